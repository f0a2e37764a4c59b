package client

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/api"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/service"
)

// The service "kurabe" and the commands understand each other.
func TestAsk(t *testing.T) {
	want := []kurabe.Following{{
		Name: "shop", Standbys: true, UnprotectedSince: time.Date(2026, 11, 28, 1, 2, 3, 400e6, time.UTC), Waits: &kurabe.WaitCount{},
		Followers: []kurabe.Follower{{Server: "db-A~2", Host: "h", Kind: kurabe.FollowerStandby, Lag: &kurabe.ReplicaLag{Server: "db-A~2", Seconds: 1.5}}},
	}}
	own := ownapi.API{Config: ownapi.Config{Following: func(context.Context) []kurabe.Following { return want }}}
	who := service.Credentials{AccessKey: "AKIAEXAMPLE", Secret: "secret"}
	server := api.New(api.Config{
		Region: DefaultRegion, Account: "000000000000", Log: slog.New(slog.DiscardHandler), Services: []api.Service{own.Service()},
		Credentials: func(id string) (logkey.Secret, bool) { return who.Secret, id == who.AccessKey },
	})
	web := httptest.NewServer(server)
	defer web.Close()
	c := Flags{Endpoint: web.URL, Region: DefaultRegion}.ClientAs(who)
	out, err := Ask[ownapi.DescribeReplicationOutput](t.Context(), c, "DescribeReplication", nil)
	if err != nil || !reflect.DeepEqual(out.Replication, want) {
		t.Errorf("%+v, %v", out.Replication, err)
	}
	_, err = Ask[ownapi.PermitDrillOutput](t.Context(), c, "PermitDrill", ownapi.PermitDrillInput{PID: -1})
	if err == nil || !strings.HasPrefix(err.Error(), "InvalidParameterValue: PID -1") {
		t.Error(err)
	}
}
