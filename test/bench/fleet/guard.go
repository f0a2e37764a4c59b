package fleet

import (
	"context"

	"kurabe"
	"kurabe/internal/agent"
	"kurabe/internal/engine/fake"
)

// farGuards are the guards of a fake engine as an agent has them.
type farGuards struct{ *fake.Guards }

// Open implements agent.Guards.
func (g farGuards) Open(_ context.Context, a kurabe.Assignment) (agent.Guard, error) {
	return g.Guards.Open(a), nil
}

// Find implements agent.Guards.
func (g farGuards) Find(_ context.Context, a kurabe.Assignment) (agent.Guard, error) {
	if w := g.Guards.Find(a.Instance); w != nil {
		return w, nil
	}
	return nil, nil
}
