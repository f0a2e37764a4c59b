package control

import (
	"context"

	"kurabe"
)

// LogSource reads the engine logs of servers, from the host that runs them: the id is
// that of an instance's only server, or of one of its group.
type LogSource interface {
	List(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName) ([]kurabe.LogFile, error)
	Read(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name, marker string, lines int) (kurabe.LogPortion, error)
}
