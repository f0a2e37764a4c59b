package store

import (
	"errors"
	"kurabe"
	"maps"
	"slices"
	"strings"
)

// state is the decoded content of a View. It has no lock of its own.
type state struct {
	instances shelf[kurabe.InstanceID, Instance, *Instance]
	snapshots shelf[kurabe.SnapshotID, Snapshot, *Snapshot]
	proxies   shelf[kurabe.ProxyID, Proxy, *Proxy]
	taken     links[kurabe.InstanceID, kurabe.SnapshotID] // snapshots of an instance
	restored  links[kurabe.SnapshotID, kurabe.InstanceID] // instances made of a snapshot
	copies    links[kurabe.SnapshotID, kurabe.SnapshotID] // copies of a snapshot
	replicas  links[kurabe.InstanceID, kurabe.InstanceID] // instances that were or are read replicas of one

	hosts              map[kurabe.HostID]Record[kurabe.HostReport]
	joined             map[kurabe.HostID]Record[kurabe.JoinedHost]
	presence           map[kurabe.HostID]Record[kurabe.Presence]
	tokens             map[string]Record[kurabe.JoinToken]
	planner            kurabe.HostID // of the elected planner
	logs               map[kurabe.HostID]map[kurabe.InstanceID]kurabe.InstanceLog
	catalogs           map[catalogID]map[kurabe.HostID]*kurabe.Catalog
	agreements         agreements // of catalogs
	parameterGroups    map[string]Record[kurabe.ParameterGroup]
	subnetGroups       map[string]Record[kurabe.SubnetGroup]
	securityGroups     map[string]Record[kurabe.SecurityGroup]
	domain             Record[kurabe.EndpointDomain]
	events             timeline[*PlacedEvent]
	committed          commitOrder                     // the events
	alarms             map[string]Record[kurabe.Alarm] // by kurabe.AlarmKey
	alarmStatus        map[string]Record[kurabe.AlarmStatus]
	alarmHistory       timeline[kurabe.AlarmEntry]
	eventSubscriptions map[string]Record[kurabe.EventSubscription]
	eventCursor        Record[kurabe.EventCursor]
	logGroups          map[string]Record[kurabe.LogGroup] // by the segment of the key
	topics             map[string]Record[kurabe.Topic]
	notify             map[kurabe.TopicID]*topicState
	certificates       map[string]Record[kurabe.SigningCertificate]
	secrets            map[string]Record[kurabe.Secret] // by kurabe.SecretKey
	masterSecrets      map[kurabe.InstanceID]string     // their keys
	secretBytes        int                              // of sealed values, which are not here
	// corrupt are the records that did not decode.
	corrupt map[string]*CorruptError
}

// catalogID names a catalog; hosts that report the same one are merged.
type catalogID struct {
	engine  kurabe.EngineName
	version string
}

// touch is what one event makes dirty.
type touch struct {
	all       bool
	instances []kurabe.InstanceID
	snapshots []kurabe.SnapshotID
}

func newState() *state {
	return &state{
		instances:          newShelf[kurabe.InstanceID, Instance](),
		snapshots:          newShelf[kurabe.SnapshotID, Snapshot](),
		proxies:            newShelf[kurabe.ProxyID, Proxy](),
		taken:              links[kurabe.InstanceID, kurabe.SnapshotID]{},
		restored:           links[kurabe.SnapshotID, kurabe.InstanceID]{},
		copies:             links[kurabe.SnapshotID, kurabe.SnapshotID]{},
		replicas:           links[kurabe.InstanceID, kurabe.InstanceID]{},
		hosts:              map[kurabe.HostID]Record[kurabe.HostReport]{},
		joined:             map[kurabe.HostID]Record[kurabe.JoinedHost]{},
		presence:           map[kurabe.HostID]Record[kurabe.Presence]{},
		tokens:             map[string]Record[kurabe.JoinToken]{},
		logs:               map[kurabe.HostID]map[kurabe.InstanceID]kurabe.InstanceLog{},
		catalogs:           map[catalogID]map[kurabe.HostID]*kurabe.Catalog{},
		parameterGroups:    map[string]Record[kurabe.ParameterGroup]{},
		subnetGroups:       map[string]Record[kurabe.SubnetGroup]{},
		securityGroups:     map[string]Record[kurabe.SecurityGroup]{},
		eventSubscriptions: map[string]Record[kurabe.EventSubscription]{},
		logGroups:          map[string]Record[kurabe.LogGroup]{},
		topics:             map[string]Record[kurabe.Topic]{},
		notify:             map[kurabe.TopicID]*topicState{},
		alarms:             map[string]Record[kurabe.Alarm]{},
		alarmStatus:        map[string]Record[kurabe.AlarmStatus]{},
		secrets:            map[string]Record[kurabe.Secret]{},
		masterSecrets:      map[kurabe.InstanceID]string{},
		corrupt:            map[string]*CorruptError{},
		certificates:       map[string]Record[kurabe.SigningCertificate]{},
	}
}

// put brings a written record in. One that does not decode leaves what was
// there before in place and is noted: an unreadable spec must never look like a
// deleted instance, nor an unreadable group like an instance with one server.
func (s *state) put(e Entry) touch {
	delete(s.corrupt, e.Key)
	p := parseKey(e.Key)
	t, err := s.putKind(p, e)
	switch {
	case err == nil:
		return t
	case p.decides():
		t = s.putUnreadable(p, e.Key)
	default:
		t = p.touched()
	}
	s.corrupt[e.Key] = asCorrupt(e.Key, err)
	return t
}

func (s *state) putKind(p keyParts, e Entry) (touch, error) {
	switch p.kind {
	case KindInstanceSpec, KindInstanceStatus, KindGroup, KindAssignment, KindInstanceReport, KindTask, KindTaskReport:
		return s.putInstance(p, e)
	case KindInstanceName:
		owners, err := s.instances.putName(p.name, e)
		return touch{instances: owners}, err
	case KindSnapshotSpec, KindSnapshotStatus, KindSnapshotAssignment, KindSnapshotReport:
		return s.putSnapshot(p, e)
	case KindSnapshotName:
		owners, err := s.snapshots.putName(p.name, e)
		return touch{snapshots: owners}, err
	case KindProxy, KindProxyName, KindProxyStatus, KindProxyAssignment, KindProxyReport:
		return touch{}, s.putProxy(p, e)
	case KindHostReport:
		return touch{all: true}, keep(s.hosts, p.host, e)
	case KindLogReport:
		// It moves all the time, and no plan depends on it: nothing becomes dirty.
		r, err := decodePacked[kurabe.LogReport](e)
		if err != nil {
			return touch{}, err
		}
		logs := map[kurabe.InstanceID]kurabe.InstanceLog{}
		for _, l := range r.Logs {
			logs[l.Instance] = l
		}
		s.logs[p.host] = logs
	case KindCatalog:
		c, err := decodePacked[kurabe.Catalog](e)
		if err != nil {
			return touch{}, err
		}
		id := catalogID{p.engine, p.version}
		if s.catalogs[id] == nil {
			s.catalogs[id] = map[kurabe.HostID]*kurabe.Catalog{}
		}
		s.catalogs[id][p.host] = &c
		return touch{all: true}, nil
	case KindParameterGroup, KindSubnetGroup:
		return s.putGroup(p, e)
	case KindSecurityGroup:
		return touch{instances: s.membersOf(p.name)}, keep(s.securityGroups, p.name, e)
	case KindLogGroup:
		return touch{}, keep(s.logGroups, p.name, e)
	case KindEndpointDomain:
		return s.putDomain(e)
	case KindEvent, KindEventSubscription, KindEventCursor:
		return touch{}, s.putEvent(p, e)
	case KindJoinedHost, KindJoinToken, KindPresence:
		return s.putJoined(p, e)
	case KindSigningCertificate:
		return touch{}, keep(s.certificates, p.name, e)
	case KindTopic, KindSubscription, KindDeliveryCursor, KindNotification:
		return touch{}, s.putNotify(p, e)
	case KindAlarm, KindAlarmStatus, KindAlarmEntry:
		return touch{}, s.putAlarm(p, e)
	case KindSecret:
		return touch{}, s.putSecret(p, e)
	case KindElection:
		if e.Key == PlannerElectionKey {
			s.planner = kurabe.HostID(e.Value)
		}
	}
	return touch{}, nil
}

// putGroup brings a parameter group or a subnet group in.
func (s *state) putGroup(p keyParts, e Entry) (touch, error) {
	if p.kind == KindSubnetGroup {
		return touch{}, keep(s.subnetGroups, p.name, e)
	}
	return touch{instances: s.usersOf(p.name)}, keep(s.parameterGroups, p.name, e)
}

// remove takes a deleted record out.
func (s *state) remove(key string) touch {
	delete(s.corrupt, key)
	p := parseKey(key)
	switch p.kind {
	case KindInstanceSpec, KindInstanceStatus, KindGroup, KindAssignment, KindInstanceReport, KindTask, KindTaskReport:
		return s.removeInstance(p, key)
	case KindInstanceName:
		return touch{instances: s.instances.removeName(p.name)}
	case KindSnapshotSpec, KindSnapshotStatus, KindSnapshotAssignment, KindSnapshotReport:
		return s.removeSnapshot(p)
	case KindSnapshotName:
		return touch{snapshots: s.snapshots.removeName(p.name)}
	case KindProxy, KindProxyName, KindProxyStatus, KindProxyAssignment, KindProxyReport:
		s.removeProxy(p)
	case KindHostReport:
		delete(s.hosts, p.host)
		return touch{all: true}
	case KindLogReport:
		delete(s.logs, p.host)
	case KindCatalog:
		id := catalogID{p.engine, p.version}
		delete(s.catalogs[id], p.host)
		if len(s.catalogs[id]) == 0 {
			delete(s.catalogs, id)
		}
		return touch{all: true}
	case KindParameterGroup:
		delete(s.parameterGroups, p.name)
		return touch{instances: s.usersOf(p.name)}
	case KindSubnetGroup:
		delete(s.subnetGroups, p.name)
	case KindSecurityGroup:
		delete(s.securityGroups, p.name)
		return touch{instances: s.membersOf(p.name)}
	case KindLogGroup:
		delete(s.logGroups, p.name)
	case KindEndpointDomain:
		s.domain = Record[kurabe.EndpointDomain]{}
		return touch{all: true}
	case KindEvent:
		s.events.remove(p.name)
		s.committed.remove(p.name)
	case KindEventSubscription:
		delete(s.eventSubscriptions, p.name)
	case KindEventCursor:
		s.eventCursor = Record[kurabe.EventCursor]{}
	case KindJoinedHost:
		delete(s.joined, p.host)
		return touch{all: true}
	case KindJoinToken:
		delete(s.tokens, p.name)
	case KindPresence:
		delete(s.presence, p.host)
		return touch{all: true}
	case KindSigningCertificate:
		delete(s.certificates, p.name)
	case KindTopic, KindSubscription, KindDeliveryCursor, KindNotification:
		s.removeNotify(p)
	case KindAlarm, KindAlarmStatus, KindAlarmEntry:
		s.removeAlarm(p)
	case KindSecret:
		s.removeSecret(p)
	case KindElection:
		if key == PlannerElectionKey {
			s.planner = ""
		}
	}
	return touch{}
}

// usersOf lists the instances that use or wait for a parameter group.
func (s *state) usersOf(group string) []kurabe.InstanceID {
	var out []kurabe.InstanceID
	for id, i := range s.instances.all {
		if i.Spec == nil {
			continue
		}
		uses := func(name string) bool { return kurabe.NameKey(name, i.Spec.Cluster) == group }
		if uses(i.Spec.ParameterGroup) || i.Status != nil && uses(i.Status.ParameterGroup) {
			out = append(out, id)
		}
	}
	return out
}

func (s *state) corruptSorted() []*CorruptError {
	return slices.SortedFunc(maps.Values(s.corrupt), func(a, b *CorruptError) int { return strings.Compare(a.Key, b.Key) })
}

// touched is what a record that cannot be read makes dirty: the unit that its key
// names, if it names one.
func (p keyParts) touched() touch {
	var t touch
	if p.instance != "" {
		t.instances = []kurabe.InstanceID{p.owner()}
	}
	if p.snapshot != "" {
		t.snapshots = []kurabe.SnapshotID{p.snapshot}
	}
	return t
}

// asCorrupt makes a CorruptError of what went wrong with a key.
func asCorrupt(key string, err error) *CorruptError {
	if c, ok := errors.AsType[*CorruptError](err); ok {
		return c
	}
	return &CorruptError{Key: key, Err: err}
}

// putJoined brings in what is kept of hosts beside the service's own. Where things are
// placed, and what is told of what is there, depends on the first and the last.
func (s *state) putJoined(p keyParts, e Entry) (touch, error) {
	switch p.kind {
	case KindJoinedHost:
		return touch{all: true}, keep(s.joined, p.host, e)
	case KindPresence:
		return touch{all: true}, keep(s.presence, p.host, e)
	}
	return touch{}, keep(s.tokens, p.name, e)
}

// keep decodes a record and puts it where its like are.
func keep[K comparable, V any](records map[K]Record[V], key K, e Entry) error {
	v, err := decode[V](e)
	if err == nil {
		records[key] = Record[V]{v, e.ModRevision}
	}
	return err
}
