package control

import (
	"context"

	"kurabe"
	"kurabe/internal/control/placement"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

// DrillTarget finds a server that a drill may strike: one of several of an instance or of a DB
// cluster (name is a kurabe.NameKey), which runs as the process that the drill has seen. It
// changes nothing.
func (c *Control) DrillTarget(name string, server kurabe.InstanceID, pid int) (kurabe.Member, error) {
	i, ok := c.View.InstanceByName(name)
	if !ok || i.Spec == nil {
		return kurabe.Member{}, kurabe.Errorf(kurabe.CodeInstanceNotFound, "DBInstance %.80s not found.", name)
	}
	g := i.Group
	if g == nil || len(g.Members) < placement.MultiAZZones {
		return kurabe.Member{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s has one server, so no other one can take over", i.Spec.Name)
	}
	m, known := g.Member(server)
	if !known {
		return m, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "%.80s is no server of %s", server, i.Spec.Name)
	}
	if r, told := i.ReportOf(server); !told || !r.Running || r.PID != pid || r.Host != m.Host {
		return m, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "%s is not seen to run as process %d: look again", server, pid)
	}
	return m, nil
}

// TellDrill tells users what a drill is about to have done to a server ("killed"), and says
// where that is. It is told before: whoever dies between the two has told of a fault that did not come, and there
// is none that nobody has told of.
func (c *Control) TellDrill(ctx context.Context, name string, server kurabe.InstanceID, pid int, done string) (m kurabe.Member, err error) {
	err = c.Update(ctx, func() (*store.Change, error) {
		if m, err = c.DrillTarget(name, server, pid); err != nil {
			return nil, err
		}
		i, ok := c.View.InstanceByName(name)
		if !ok || i.Spec == nil {
			return nil, kurabe.Errorf(kurabe.CodeInstanceNotFound, "DBInstance %.80s not found.", name)
		}
		kind := event.Drilled.With(server.Number(), m.Zone, done, pid)
		if i.Spec.Cluster {
			kind.Source = event.Cluster
		}
		return store.NewChange().AddEvent(kind.Told(c.Now().UTC(), i.Spec.Name, string(i.ID))), nil
	})
	return m, err
}
