package kurabe

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/drill"
)

// Mount answers the actions at the paths at which the commands of the version before ask for
// them, signed for "rds".
func (a API) Mount(server *api.Server) {
	drain := func(q *query) DrainHostInput { return DrainHostInput{q.host(), q.Get("undo") != ""} }
	host := func(q *query) HostInput { return HostInput{q.host()} }
	hosts := func(o *HostsOutput) any { return o.Hosts }
	verification := func(o *VerificationOutput) any { return o.Verification }
	progress := func(o *ImportOutput) any { return o.Import }
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET /kurabe/explain": at(a.explain, func(q *query) ExplainInput { return ExplainInput{q.Get("name")} },
			func(o *ExplainOutput) any { return o.Explanation }),
		"GET /kurabe/endpoints": at(a.describeEndpoints, none[DescribeEndpointsInput], func(o *DescribeEndpointsOutput) any { return o.Endpoints }),
		"GET /kurabe/following": at(a.describeReplication, none[DescribeReplicationInput], func(o *DescribeReplicationOutput) any { return o.Replication }),
		"GET /kurabe/snapshots": at(a.describeSnapshots, func(q *query) DescribeSnapshotsInput { return DescribeSnapshotsInput{q.Get("instance"), q.Get("name")} },
			func(o *DescribeSnapshotsOutput) any { return o.Snapshots }),
		"POST /kurabe/verify": at(a.startVerification, func(q *query) StartVerificationInput { return StartVerificationInput{q.Get("name")} }, verification),
		"GET /kurabe/verify": at(a.describeVerification, func(q *query) DescribeVerificationInput {
			return DescribeVerificationInput{q.Get("name"), q.number("seq", "0")}
		}, verification),
		"POST /kurabe/recover": at(a.acceptDataLoss, func(q *query) AcceptDataLossInput {
			return AcceptDataLossInput{q.Get("name"), q.number("epoch", ""), kurabe.InstanceID(q.Get("to"))}
		}, whole[AcceptDataLossOutput]),
		"POST /kurabe/drill/permit": at(a.permitDrill, (*query).victim, func(o *PermitDrillOutput) any { return o.Permit }),
		"POST /kurabe/drill/strike": at(a.strikeDrill, func(q *query) StrikeDrillInput { return StrikeDrillInput{q.victim(), q.Get("permit")} }, whole[StrikeDrillOutput]),
		"POST /kurabe/drill/hold": at(a.holdDrill, func(q *query) HoldDrillInput {
			return HoldDrillInput{q.host(), kurabe.InstanceID(q.Get("server")), q.Get("permit"), q.Get("end") == "true"}
		}, func(o *HoldDrillOutput) any { return o.Held }),
		"GET /kurabe/hosts":         at(a.describeHosts, none[DescribeHostsInput], hosts),
		"GET /kurabe/hosts/leaving": at(a.describeLeavingServers, host, func(o *DescribeLeavingServersOutput) any { return o.Servers }),
		"POST /kurabe/hosts/token": at(a.createJoinToken, func(q *query) CreateJoinTokenInput {
			return CreateJoinTokenInput{q.duration("validity").Seconds(), q.Get("server") != ""}
		}, whole[CreateJoinTokenOutput]),
		"POST /kurabe/hosts/drain":   at(a.drainHost, drain, hosts),
		"POST /kurabe/hosts/remove":  at(a.removeHost, host, hosts),
		"POST /kurabe/hosts/give-up": at(a.giveUpHost, host, hosts),
		"POST /kurabe/import":        at(a.startImport, func(q *query) StartImportInput { return StartImportInput{q.Get("repository")} }, progress),
		"GET /kurabe/import": at(a.describeImport, func(q *query) DescribeImportInput {
			return DescribeImportInput{q.Get("job"), int(q.number("from", ""))}
		}, progress),
	} {
		server.Handle(pattern, server.Signed(answer))
	}
}

// at answers an action whose input is read from a query; show is the part of the output that the
// path answers.
func at[In, Out any](handle func(context.Context, *In) (*Out, error), read func(*query) In, show func(*Out) any) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		q := query{Values: r.URL.Query()}
		in := read(&q)
		if q.err != nil {
			return nil, q.err
		}
		out, err := handle(r.Context(), &in)
		if err != nil {
			return nil, err
		}
		return show(out), nil
	}
}

func none[In any](*query) (in In) { return in }

func whole[Out any](o *Out) any { return o }

// query reads the parameters of a path. err is the first that could not be read.
type query struct {
	url.Values
	err error
}

func (q *query) wrong(key, form string) {
	q.err = cmp.Or(q.err, error(kurabe.Errorf(kurabe.CodeInvalidParameterValue, "%s %.40q is no %s", key, q.Get(key), form)))
}

func (q *query) host() kurabe.HostID { return kurabe.HostID(q.Get("host")) }

func (q *query) number(key, absent string) int64 {
	n, err := strconv.ParseInt(cmp.Or(q.Get(key), absent), 10, 64)
	if err != nil {
		q.wrong(key, "number")
	}
	return n
}

func (q *query) duration(key string) time.Duration {
	d, err := time.ParseDuration(q.Get(key))
	if err != nil {
		q.wrong(key, "duration, such as 5s")
	}
	return d
}

// victim reads what is to be done to which process of which server.
func (q *query) victim() PermitDrillInput {
	f := drill.Fault{Action: drill.Action(q.Get("action"))}
	if q.Has("for") {
		f.For = q.duration("for")
	}
	for _, text := range q.Values["peer"] {
		peer, err := netip.ParseAddr(text)
		if err != nil {
			q.wrong("peer", "address")
		}
		f.Peers = append(f.Peers, peer)
	}
	return PermitDrillInput{q.Get("name"), kurabe.InstanceID(q.Get("server")), int(q.number("pid", "")), f}
}
