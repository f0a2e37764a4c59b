package store

import (
	"strings"

	"kurabe"
)

// Root is the prefix of every key. The number is the layout's version: another
// layout gets another root, so that an old binary never misreads a new store.
const Root = "/kurabe/v1/"

// The prefixes under Root, one per kind of record.
const (
	instanceSpecs   = Root + "spec/instance/"               // <id>: InstanceSpec; written by the API
	parameterGroups = Root + "spec/parameter-group/"        // <name>: ParameterGroup; written by the API
	subnetGroups    = Root + "spec/subnet-group/"           // <name>: SubnetGroup; written by the API
	securityGroups  = Root + "spec/security-group/"         // <id>: SecurityGroup; written by the API
	endpointDomain  = Root + "spec/service/endpoint-domain" // EndpointDomain; written by a server that is told one at its start
	instanceNames   = Root + "name/instance/"               // <name>: nameRecord; makes names unique
	instanceStatus  = Root + "status/instance/"             // <id>: InstanceStatus; written by the planner
	assignments     = Root + "assignment/"                  // <host>/<member id>: Assignment; written by the planner
	groups          = Root + "group/"                       // <instance id>: Group; written by the planner
	snapshotSpecs   = Root + "spec/snapshot/"               // <id>: SnapshotSpec; written by the API, automated ones by the planner
	snapshotNames   = Root + "name/snapshot/"               // <name>: nameRecord; makes names unique
	snapshotStatus  = Root + "status/snapshot/"             // <id>: SnapshotStatus; written by the planner
	snapshotOrders  = Root + "snapshot-assignment/"         // <host>/<id>: SnapshotAssignment; written by the planner
	proxies         = Root + "spec/proxy/"                  // <id>: Proxy; written by the API
	proxyNames      = Root + "name/proxy/"                  // <name>, endpoint:<name>: nameRecord; makes names unique
	proxyStatus     = Root + "status/proxy/"                // <id>: ProxyStatus; written by the planner
	proxyOrders     = Root + "proxy-assignment/"            // <host>/<id>: ProxyAssignment; written by the planner
	tasks           = Root + "task/"                        // <kind>/<host>/<instance id>: Task; written by the planner
	reports         = Root + "report/"                      // <host>/…; written by that host's agent
	joinedHosts     = Root + "host/"                        // <host>: JoinedHost; written by the API
	joinTokens      = Root + "join-token/"                  // <id>: JoinToken; written by the API
	presences       = Root + "presence/"                    // <host>: Presence; written by the server that hears the host
	events          = Root + "event/"                       // <seq>: Event; written by the planner and the API
	logGroups       = Root + "log-group/"                   // <name, : for />: LogGroup; written by the API and by servers that find events of a group
	alarms          = Root + "spec/alarm/"                  // <kurabe.AlarmKey of the name>: Alarm; written by the API
	alarmStatus     = Root + "status/alarm/"                // <the same>: AlarmStatus; written by the elected server, and by the API where a user sets a state
	alarmHistory    = Root + "alarm-history/"               // <seq>: AlarmEntry; written with what it tells of
	topics          = Root + "topic/"                       // <name>: Topic; written by the API
	subscriptions   = Root + "subscription/"                // <topic id>/<id>: Subscription; written by the API
	deliveryCursors = Root + "delivery/"                    // <topic id>/<subscription id>: DeliveryCursor; written by the elected server
	certificates    = Root + "signing-certificate/"         // <name>: SigningCertificate; written by the server that has the key
	secrets         = Root + "secret/"                      // <name, : for />: Secret; written by the API, and by the elected server where a database's password is in it
	secretValues    = Root + "secret-value/"                // <secret id>/<version id>: sealed bytes; written and removed with its version of the secret
	// eventSubscriptions are written by the API, eventCursor by the elected server.
	eventSubscriptions = Root + "spec/event-subscription/" // <key>: EventSubscription
	eventCursor        = Root + "event-cursor"             // EventCursor

	notifications = Root + "notification/" // <topic id>/<seq>/<part>: bytes of a Notification; written with its cause, removed by the elected server

	formatKey = Root + "format" // written when the store is made

	// serverElections are held by the servers that run on an etcd of others, <host> each.
	serverElections = Root + "election/server-"

	// PlannerElectionKey is held by the elected planner under a lease.
	PlannerElectionKey = Root + "election/planner"
)

// Kind says what a key holds.
type Kind int

// The kinds. KindUnknown is a key of another version of the service: it is
// left alone.
const (
	KindUnknown Kind = iota
	KindFormat
	KindElection
	KindInstanceSpec
	KindInstanceName
	KindInstanceStatus
	KindGroup
	KindAssignment
	KindInstanceReport
	KindSnapshotSpec
	KindSnapshotName
	KindSnapshotStatus
	KindSnapshotAssignment
	KindSnapshotReport
	KindProxy
	KindProxyName
	KindProxyStatus
	KindProxyAssignment
	KindProxyReport
	KindTask
	KindTaskReport
	KindHostReport
	KindLogReport
	KindCatalog
	KindParameterGroup
	KindSubnetGroup
	KindSecurityGroup
	KindEvent
	KindJoinedHost
	KindJoinToken
	KindPresence
	KindEndpointDomain
	KindLogGroup
	KindTopic
	KindSubscription
	KindDeliveryCursor
	KindNotification
	KindSigningCertificate
	KindEventSubscription
	KindEventCursor
	KindAlarm
	KindAlarmStatus
	KindAlarmEntry
	KindSecret
	KindSecretValue
)

// keyParts is a key taken apart; only the fields of its kind are set.
type keyParts struct {
	kind     Kind
	instance kurabe.InstanceID // of an assignment or a report the id of the server, ID~2
	snapshot kurabe.SnapshotID
	proxy    kurabe.ProxyID
	host     kurabe.HostID
	task     kurabe.Kind
	name     string // of a group, instance, snapshot, proxy, topic or secret, the seq of an event or a notification, the name of a certificate, or the id of a subscription or of a value's secret
	topic    kurabe.TopicID
	part     string // of a notification, or the version of a secret's value
	engine   kurabe.EngineName
	version  string
}

func instanceSpecKey(id kurabe.InstanceID) string   { return instanceSpecs + string(id) }
func instanceNameKey(name string) string            { return instanceNames + name }
func instanceStatusKey(id kurabe.InstanceID) string { return instanceStatus + string(id) }
func groupKey(id kurabe.InstanceID) string          { return groups + string(id) }
func snapshotSpecKey(id kurabe.SnapshotID) string   { return snapshotSpecs + string(id) }
func snapshotNameKey(name string) string            { return snapshotNames + name }
func snapshotStatusKey(id kurabe.SnapshotID) string { return snapshotStatus + string(id) }
func proxyKey(id kurabe.ProxyID) string             { return proxies + string(id) }
func proxyNameKey(name string) string               { return proxyNames + name }
func proxyStatusKey(id kurabe.ProxyID) string       { return proxyStatus + string(id) }
func parameterGroupKey(name string) string          { return parameterGroups + name }
func subnetGroupKey(name string) string             { return subnetGroups + name }
func securityGroupKey(id string) string             { return securityGroups + id }
func eventKey(seq string) string                    { return events + seq }
func joinedHostKey(id kurabe.HostID) string         { return joinedHosts + string(id) }
func joinTokenKey(id string) string                 { return joinTokens + id }
func presenceKey(id kurabe.HostID) string           { return presences + string(id) }

func logGroupKey(segment string) string      { return logGroups + segment }
func eventSubscriptionKey(key string) string { return eventSubscriptions + key }
func alarmKey(name string) string            { return alarms + kurabe.AlarmKey(name) }
func alarmStatusKey(name string) string      { return alarmStatus + kurabe.AlarmKey(name) }

func secretKey(name string) string { return secrets + kurabe.SecretKey(name) }
func secretValueKey(id kurabe.SecretID, version kurabe.SecretVersionID) string {
	return secretValues + string(id) + "/" + string(version)
}

func certificateKey(name string) string { return certificates + name }
func topicKey(name string) string       { return topics + name }
func subscriptionKey(topic kurabe.TopicID, id kurabe.SubscriptionID) string {
	return subscriptions + string(topic) + "/" + string(id)
}
func deliveryCursorKey(topic kurabe.TopicID, id kurabe.SubscriptionID) string {
	return deliveryCursors + string(topic) + "/" + string(id)
}
func notificationKey(topic kurabe.TopicID, seq string) string {
	return notifications + string(topic) + "/" + seq + "/"
}

// ServerElectionKey is held by the server that runs with the name of that host.
func ServerElectionKey(id kurabe.HostID) string { return serverElections + string(id) }

// kindKeys says where the words about things of a kind are, and what they are.
type kindKeys struct {
	assignments string // before <host>/<id>
	reports     string // after report/<host>/
	decode      func(Entry) (kurabe.Word, error)
}

var kinds = map[kurabe.Kind]kindKeys{
	kurabe.KindServer:   {assignments, "/instance/", word[kurabe.Assignment]},
	kurabe.KindSnapshot: {snapshotOrders, "/snapshot/", word[kurabe.SnapshotAssignment]},
	kurabe.KindProxy:    {proxyOrders, "/proxy/", word[kurabe.ProxyAssignment]},
	kurabe.KindLogCheck: {tasks + string(kurabe.KindLogCheck) + "/", "/task/" + string(kurabe.KindLogCheck) + "/", word[kurabe.Task]},
}

func word[A kurabe.Word](e Entry) (kurabe.Word, error) { return decode[A](e) }

// AssignmentPrefix is the prefix of the things of a kind assigned to a host, which its agent
// watches, ThingReportPrefix of what the host reports of them.
func AssignmentPrefix(host kurabe.HostID, kind kurabe.Kind) string {
	return kinds[kind].assignments + string(host) + "/"
}

// ThingReportPrefix see AssignmentPrefix.
func ThingReportPrefix(host kurabe.HostID, kind kurabe.Kind) string {
	return reports + string(host) + kinds[kind].reports
}

func assignmentKey(host kurabe.HostID, ref kurabe.Ref) string {
	return AssignmentPrefix(host, ref.Kind) + ref.ID
}

func reportKey(host kurabe.HostID, ref kurabe.Ref) string {
	return ThingReportPrefix(host, ref.Kind) + ref.ID
}

// ReportPrefix is the prefix of everything that a host reports.
func ReportPrefix(host kurabe.HostID) string { return reports + string(host) + "/" }

func hostReportKey(host kurabe.HostID) string { return reports + string(host) + "/host" }

func logReportKey(host kurabe.HostID) string { return reports + string(host) + "/log" }

// CatalogPrefix is above the catalogs that a host has told of.
func CatalogPrefix(host kurabe.HostID) string { return reports + string(host) + "/catalog/" }

func catalogKey(host kurabe.HostID, engine kurabe.EngineName, version string) string {
	return CatalogPrefix(host) + string(engine) + "/" + version
}

// parseKey takes a key apart.
func parseKey(key string) keyParts {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok {
		return keyParts{}
	}
	s := strings.Split(rest, "/")
	for _, part := range s {
		if part == "" {
			return keyParts{}
		}
	}
	switch {
	case key == formatKey:
		return keyParts{kind: KindFormat}
	case key == eventCursor:
		return keyParts{kind: KindEventCursor}
	case len(s) == 2 && s[0] == "election":
		return keyParts{kind: KindElection, name: s[1]}
	case len(s) == 2 && s[0] == "group":
		return keyParts{kind: KindGroup, instance: kurabe.InstanceID(s[1])}
	case len(s) == 2 && s[0] == "event":
		return keyParts{kind: KindEvent, name: s[1]}
	case len(s) == 2 && s[0] == "host":
		return keyParts{kind: KindJoinedHost, host: kurabe.HostID(s[1])}
	case len(s) == 2 && s[0] == "join-token":
		return keyParts{kind: KindJoinToken, name: s[1]}
	case len(s) == 2 && s[0] == "presence":
		return keyParts{kind: KindPresence, host: kurabe.HostID(s[1])}
	case len(s) == 3 && s[0] == "assignment":
		return keyParts{kind: KindAssignment, host: kurabe.HostID(s[1]), instance: kurabe.InstanceID(s[2])}
	case len(s) == 3 && s[0] == "snapshot-assignment":
		return keyParts{kind: KindSnapshotAssignment, host: kurabe.HostID(s[1]), snapshot: kurabe.SnapshotID(s[2])}
	case len(s) == 3 && s[0] == "proxy-assignment":
		return keyParts{kind: KindProxyAssignment, host: kurabe.HostID(s[1]), proxy: kurabe.ProxyID(s[2])}
	case len(s) == 4 && s[0] == "task":
		return keyParts{kind: KindTask, task: kurabe.Kind(s[1]), host: kurabe.HostID(s[2]), instance: kurabe.InstanceID(s[3])}
	case len(s) == 2 && s[0] == "signing-certificate":
		return keyParts{kind: KindSigningCertificate, name: s[1]}
	case len(s) == 2 && s[0] == "log-group":
		return keyParts{kind: KindLogGroup, name: s[1]}
	case len(s) == 2 && s[0] == "alarm-history":
		return keyParts{kind: KindAlarmEntry, name: s[1]}
	case len(s) == 2 && s[0] == "topic":
		return keyParts{kind: KindTopic, name: s[1]}
	case len(s) == 2 && s[0] == "secret":
		return keyParts{kind: KindSecret, name: s[1]}
	case len(s) == 3 && s[0] == "secret-value":
		return keyParts{kind: KindSecretValue, name: s[1], part: s[2]}
	case len(s) == 3 && s[0] == "subscription":
		return keyParts{kind: KindSubscription, topic: kurabe.TopicID(s[1]), name: s[2]}
	case len(s) == 3 && s[0] == "delivery":
		return keyParts{kind: KindDeliveryCursor, topic: kurabe.TopicID(s[1]), name: s[2]}
	case len(s) == 4 && s[0] == "notification":
		return keyParts{kind: KindNotification, topic: kurabe.TopicID(s[1]), name: s[2], part: s[3]}
	case len(s) >= 3 && s[0] == "report":
		return parseReportKey(kurabe.HostID(s[1]), s[2:])
	case len(s) == 3:
		return parseNamedKey(s[0]+"/"+s[1], s[2])
	}
	return keyParts{}
}

// parseNamedKey takes apart the keys of the form kind/kind/name.
func parseNamedKey(kind, name string) keyParts {
	switch kind {
	case "spec/instance":
		return keyParts{kind: KindInstanceSpec, instance: kurabe.InstanceID(name)}
	case "status/instance":
		return keyParts{kind: KindInstanceStatus, instance: kurabe.InstanceID(name)}
	case "name/instance":
		return keyParts{kind: KindInstanceName, name: name}
	case "spec/snapshot":
		return keyParts{kind: KindSnapshotSpec, snapshot: kurabe.SnapshotID(name)}
	case "status/snapshot":
		return keyParts{kind: KindSnapshotStatus, snapshot: kurabe.SnapshotID(name)}
	case "name/snapshot":
		return keyParts{kind: KindSnapshotName, name: name}
	case "spec/proxy":
		return keyParts{kind: KindProxy, proxy: kurabe.ProxyID(name)}
	case "status/proxy":
		return keyParts{kind: KindProxyStatus, proxy: kurabe.ProxyID(name)}
	case "name/proxy":
		return keyParts{kind: KindProxyName, name: name}
	case "spec/alarm":
		return keyParts{kind: KindAlarm, name: name}
	case "status/alarm":
		return keyParts{kind: KindAlarmStatus, name: name}
	case "spec/parameter-group":
		return keyParts{kind: KindParameterGroup, name: name}
	case "spec/event-subscription":
		return keyParts{kind: KindEventSubscription, name: name}
	case "spec/subnet-group":
		return keyParts{kind: KindSubnetGroup, name: name}
	case "spec/security-group":
		return keyParts{kind: KindSecurityGroup, name: name}
	case "spec/service":
		if name == "endpoint-domain" {
			return keyParts{kind: KindEndpointDomain}
		}
	}
	return keyParts{}
}

// parseReportKey takes apart what follows report/<host>/.
func parseReportKey(host kurabe.HostID, s []string) keyParts {
	switch {
	case len(s) == 1 && s[0] == "host":
		return keyParts{kind: KindHostReport, host: host}
	case len(s) == 1 && s[0] == "log":
		return keyParts{kind: KindLogReport, host: host}
	case len(s) == 2 && s[0] == "instance":
		return keyParts{kind: KindInstanceReport, host: host, instance: kurabe.InstanceID(s[1])}
	case len(s) == 2 && s[0] == "snapshot":
		return keyParts{kind: KindSnapshotReport, host: host, snapshot: kurabe.SnapshotID(s[1])}
	case len(s) == 2 && s[0] == "proxy":
		return keyParts{kind: KindProxyReport, host: host, proxy: kurabe.ProxyID(s[1])}
	case len(s) == 3 && s[0] == "task":
		return keyParts{kind: KindTaskReport, task: kurabe.Kind(s[1]), host: host, instance: kurabe.InstanceID(s[2])}
	case len(s) == 3 && s[0] == "catalog":
		return keyParts{kind: KindCatalog, host: host, engine: kurabe.EngineName(s[1]), version: s[2]}
	}
	return keyParts{}
}

// keySafe says whether s may be one segment of a key.
func keySafe(s string) bool {
	if s == "" || len(s) > kurabe.LogNameMax { // log groups have the longest names
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r == '/' || r < 0x20 || r == 0x7f })
}
