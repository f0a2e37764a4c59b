//go:build integration

package integration

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

func TestTakenPort(t *testing.T) {
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		// Somebody who listens on every address leaves no endpoint with this port.
		taken, err := net.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		port := taken.Addr().(*net.TCPAddr).Port
		in := harness.Request("taken-"+engine, engine)
		in.Port = aws.Int32(int32(port))
		i := s.Create(t, in)
		i.WaitStatus(t, "incompatible-network")
		message := i.WaitEvent(t, "cannot listen")
		if !strings.Contains(message, fmt.Sprint(port)) {
			t.Errorf("the event does not name the port: %s", message)
		}
		t.Log(message)
		taken.Close()
		t.Logf("available %v after the port was freed", i.WaitStatus(t, "available"))
		if got := i.Login(t).Port; got != port {
			t.Errorf("port %d, want %d", got, port)
		}
		i.Query(t, "SELECT 1")
		i.Delete(t)
		nothingLeft(t, i)
	})
}
