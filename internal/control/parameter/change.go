package parameter

import (
	"context"
	"maps"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

// maxChanges is how many parameters one request may change, as on RDS.
const maxChanges = 20

// maxGroupValues bounds a group's names and values together in bytes, so that the
// group fits into one record of the store with room for tags.
const maxGroupValues = 64 << 10

// Change is one parameter of a request; Value is nil in a reset.
type Change struct {
	Name   string
	Value  *string
	Method kurabe.ApplyMethod // "" chooses by the parameter's ApplyType
}

// ModifyParameterGroup sets parameters of a group, all of them or none.
func (c Groups) ModifyParameterGroup(ctx context.Context, name string, changes []Change) (string, error) {
	if err := checkChangeCount(changes); err != nil {
		return "", err
	}
	return c.editParameters(ctx, name, func(g *kurabe.ParameterGroup, cat *kurabe.Catalog, change *store.Change) error {
		worlds := c.formulaWorlds(cat.Engine)
		for _, wish := range changes {
			if isOwnValue(cat, wish) {
				continue
			}
			p, method, err := modifiableParameter(cat, wish)
			if err != nil {
				return err
			}
			if wish.Value == nil {
				return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The parameter ParameterValue must be provided for %s", p.Name)
			}
			if err := checkParameterValue(p, *wish.Value, worlds); err != nil {
				return err
			}
			set := kurabe.ParameterValue{Value: *wish.Value, Method: method}
			if had, ok := g.Values[p.Name]; ok && had == set {
				continue
			}
			g.Values[p.Name] = set
			delete(g.Later, p.Name)
			c.parameterEvent(change, g.Name, p.Name, *wish.Value, method)
		}
		if err := c.checkGroupDemands(cat, g, changes); err != nil {
			return err
		}
		return checkGroupSize(g)
	})
}

// ResetParameterGroup gives parameters their defaults back; no changes means
// every one of them.
func (c Groups) ResetParameterGroup(ctx context.Context, name string, changes []Change) (string, error) {
	if len(changes) > 0 {
		if err := checkChangeCount(changes); err != nil {
			return "", err
		}
	}
	return c.editParameters(ctx, name, func(g *kurabe.ParameterGroup, cat *kurabe.Catalog, change *store.Change) error {
		if len(changes) == 0 && len(g.Values) > 0 {
			// RDS: a reset of all applies dynamic parameters at once.
			clear(g.Values)
			clear(g.Later)
			c.resetEvent(change, g.Name)
		}
		for _, wish := range changes {
			key := strings.ToLower(wish.Name)
			_, set := g.Values[key]
			p, known := cat.Find(key)
			if !set && !known {
				return unknownParameter(wish.Name)
			}
			method, err := checkMethod(p, wish.Method)
			if err != nil {
				return err
			}
			if set {
				delete(g.Values, key)
				if method == kurabe.ApplyPendingReboot {
					g.Later[key] = true
				}
				c.parameterEvent(change, g.Name, key, "its default", method)
			}
		}
		return nil
	})
}

// editParameters runs an edit on a copy of a group's values and stores the
// outcome, unless edit reported no event: then nothing changed.
func (c Groups) editParameters(ctx context.Context, name string, edit func(*kurabe.ParameterGroup, *kurabe.Catalog, *store.Change) error) (string, error) {
	folded := name
	err := c.Update(ctx, func() (*store.Change, error) {
		record, err := c.OwnRecord(name, ErrDefault)
		if err != nil {
			return nil, err
		}
		g := record.Value
		folded = g.Name
		cat, err := c.RequireFamily(g.Family)
		if err != nil {
			return nil, err
		}
		g.Values = maps.Clone(g.Values)
		if g.Values == nil {
			g.Values = map[string]kurabe.ParameterValue{}
		}
		g.Later = maps.Clone(g.Later)
		if g.Later == nil {
			g.Later = map[string]bool{}
		}
		change := store.NewChange()
		if err := edit(&g, cat, change); err != nil || change.Empty() {
			return nil, err
		}
		g.Revision++
		return change.PutParameterGroup(g, record.ModRevision), nil
	})
	return folded, err
}

func checkChangeCount(changes []Change) error {
	if len(changes) == 0 || len(changes) > maxChanges {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "A request names 1 to %d parameters, not %d", maxChanges, len(changes))
	}
	seen := map[string]bool{}
	for _, wish := range changes {
		key := strings.ToLower(wish.Name)
		if seen[key] {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "The parameter %s is named more than once", wish.Name)
		}
		seen[key] = true
	}
	return nil
}

// modifiableParameter finds the parameter that a wish names and checks that a
// user may change it in that way.
func modifiableParameter(cat *kurabe.Catalog, wish Change) (kurabe.Parameter, kurabe.ApplyMethod, error) {
	p, ok := cat.Find(strings.ToLower(wish.Name))
	if !ok {
		return p, "", unknownParameter(wish.Name)
	}
	if !p.Modifiable {
		why := p.Fixed
		if why == "" {
			why = "the engine lets nobody set it"
		}
		return p, "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The parameter %s cannot be modified: %s", p.Name, why)
	}
	method, err := checkMethod(p, wish.Method)
	return p, method, err
}

// isOwnValue says of a wish that it asks for the value that a parameter has, and nobody can
// change. That is granted, and nothing is written: the value stays the service's.
func isOwnValue(cat *kurabe.Catalog, wish Change) bool {
	p, ok := cat.Find(strings.ToLower(wish.Name))
	if !ok || p.Modifiable || !p.HasDefault || wish.Value == nil {
		return false
	}
	return strings.EqualFold(*wish.Value, p.Default) ||
		p.Type == "boolean" && scope.HasFold(booleanWords, *wish.Value) && isTrue(*wish.Value) == isTrue(p.Default)
}

func isTrue(word string) bool { return scope.HasFold([]string{"1", "on", "true", "yes"}, word) }

func unknownParameter(name string) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsParameter, name)
}

// checkMethod completes and checks the apply method of a parameter.
func checkMethod(p kurabe.Parameter, method kurabe.ApplyMethod) (kurabe.ApplyMethod, error) {
	switch {
	case method == "" && p.Apply == kurabe.ApplyDynamic:
		return kurabe.ApplyImmediate, nil
	case method == "" || method == kurabe.ApplyPendingReboot:
		return kurabe.ApplyPendingReboot, nil
	case method != kurabe.ApplyImmediate:
		return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid apply method: %s; valid are immediate and pending-reboot", method)
	case p.Apply == kurabe.ApplyStatic:
		return "", kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsStaticParameter)
	}
	return method, nil
}

func checkGroupSize(g *kurabe.ParameterGroup) error {
	size := 0
	for name, v := range g.Values {
		size += len(name) + len(v.Value)
	}
	if size > maxGroupValues {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The values of a DB parameter group have at most %d bytes together", maxGroupValues)
	}
	return nil
}

func (c Groups) parameterEvent(change *store.Change, group, parameter, value string, method kurabe.ApplyMethod) {
	kind := event.ParameterUpdated.With(parameter, value, method)
	change.AddEvent(kind.Told(c.Now().UTC(), group, c.groupSource(group)))
}

// ClusterSource begins the SourceID of events of cluster parameter groups: RDS has no
// source type of their own.
const ClusterSource = "cluster-pg:"

func (c Groups) groupSource(group string) string {
	if c.Cluster {
		return ClusterSource + group
	}
	return ""
}

// resetEvent tells of all parameters at once, which RDS has no event for.
func (c Groups) resetEvent(change *store.Change, group string) {
	change.AddEvent(event.ParametersReset.Told(c.Now().UTC(), group, c.groupSource(group)))
}
