package drill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/proc"
)

// Action is what a drill does.
type Action string

// The actions. A killed server gets SIGKILL, a frozen one SIGSTOP and later SIGCONT. What a
// server that is cut off and the others say to each other is lost; clients reach it.
const (
	Kill     Action = "kill"
	Freeze   Action = "freeze"
	Cut      Action = "cut"
	Failover Action = "failover"
)

// Side is which server it is done to.
type Side string

// The sides, as the instance is when the fault comes. A pair has a Standby, a DB cluster has
// two readers, of which Reader is one. Both are the writer and that other one.
const (
	Writer  Side = "writer"
	Standby Side = "standby"
	Reader  Side = "reader"
	Both    Side = "both"
)

// Bounds of a freeze and of a cut. Nothing is learned from a longer one, and the guard of a
// freeze lives as long.
const (
	FreezeMin = 100 * time.Millisecond
	FreezeMax = 10 * time.Minute
)

// Order is what to rehearse.
type Order struct {
	Action Action
	Side   Side           // of Kill, Freeze and Cut
	Server ServerSelector // of Reader and Standby
	For    time.Duration  // of Freeze and Cut
	// Cluster: it is of a DB cluster.
	Cluster bool
}

// Check refuses what is no drill.
func (o Order) Check() error {
	other := o.Side == Standby || o.Side == Reader
	switch {
	case o.Action == Kill && (o.Side == Writer || other || o.Side == Both):
	case o.Action == Kill:
		return fmt.Errorf("invalid --kill %q; use writer, standby (reader of a DB cluster) or both", o.Side)
	case o.lasts() && o.Side != Writer && !other:
		return fmt.Errorf("invalid --%s %q; use writer or standby (reader of a DB cluster)", o.Action, o.Side)
	case o.lasts() && (o.For < FreezeMin || o.For > FreezeMax):
		return fmt.Errorf("--for %v is not between %v and %v", o.For, FreezeMin, FreezeMax)
	case !o.lasts() && o.Action != Failover:
		return errors.New("name the fault: --kill, --freeze, --cut or --failover")
	}
	return nil
}

// lasts: it has a time.
func (o Order) lasts() bool { return o.Action == Freeze || o.Action == Cut }

// fits says whether what it is done to has such a server, and what is there instead.
func (o Order) fits() error {
	switch {
	case o.Cluster && o.Side == Standby:
		return errors.New("a DB cluster has readers, no standby: use reader")
	case !o.Cluster && o.Side == Reader:
		return errors.New("a Multi-AZ instance has no reader: use standby")
	}
	return nil
}

func (o Order) String() string {
	sides := "the " + string(o.Side)
	switch {
	case !o.Server.any():
		sides += fmt.Sprintf(" (%v)", o.Server)
	case o.Side == Both && o.Cluster:
		sides = "the writer and a reader"
	case o.Side == Both:
		sides = "both servers"
	case o.Side == Reader:
		sides = "a reader"
	}
	switch o.Action {
	case Kill:
		return "kill " + sides
	case Freeze:
		return fmt.Sprintf("freeze %s for %v", sides, o.For)
	case Cut:
		return fmt.Sprintf("cut %s off from the others for %v", sides, o.For)
	}
	return "a planned failover"
}

// sides are the servers that it is done to.
func (o Order) sides(l Look, here kurabe.HostID) (list []Server, err error) {
	writer, _ := l.Server(l.Writer)
	if o.Action == Failover {
		return nil, nil
	}
	if o.Side != Standby && o.Side != Reader {
		list = append(list, writer)
	}
	if o.Side == Writer {
		return list, nil
	}
	other, err := o.other(l, here)
	if err != nil {
		return nil, err
	}
	return append(list, other), nil
}

// target is a server that is to be struck: the process of it, or, of one on another host, what
// that host permits. Of one there that is to be cut off the permits are asked for last (cutOff).
type target struct {
	Server
	process proc.Process
	dataDir string
	permit  *Permit
}

// pid is that of its process, on its host.
func (t target) pid() int {
	if t.process.PID > 0 {
		return t.process.PID
	}
	return t.Server.PID
}

// name is that of a server in the words of the drill.
func name(id kurabe.InstanceID) string { return fmt.Sprintf("server %d", id.Number()) }

func names(ids []kurabe.InstanceID) string {
	var list []string
	for _, id := range ids {
		list = append(list, name(id))
	}
	return strings.Join(list, " and ")
}

// find finds the process of a server by its record, and refuses one that we may not signal.
func find(data string, s Server) (target, error) {
	home := engine.Home{Dir: filepath.Join(data, "instances", string(s.ID))}
	p, found, err := home.Daemon().Find()
	if errors.Is(err, fs.ErrPermission) {
		return target{}, fmt.Errorf("the record of the process of %s cannot be read: run the drill as root, or as the user of the service (%w)", s.ID, err)
	}
	if err != nil {
		return target{}, fmt.Errorf("look up the process of %s: %w", s.ID, err)
	}
	if !found {
		return target{}, fmt.Errorf("%s has no running process on this host; is %s the data folder of this service?", s.ID, data)
	}
	switch err := p.Signal(0); {
	case errors.Is(err, os.ErrProcessDone):
		return target{}, fmt.Errorf("process %d of %s has just ended", p.PID, s.ID)
	case errors.Is(err, syscall.EPERM):
		return target{}, fmt.Errorf("process %d of %s belongs to another user: run the drill as root", p.PID, s.ID)
	case err != nil:
		return target{}, err
	}
	return target{Server: s, process: p, dataDir: home.DataDir()}, nil
}
