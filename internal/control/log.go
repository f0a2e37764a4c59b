package control

import (
	"context"

	"kurabe"
)

// LogSource reads the engine logs of instances, from the host that runs them.
type LogSource interface {
	List(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName) ([]kurabe.LogFile, error)
	Read(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name, marker string, lines int) (kurabe.LogPortion, error)
}
