package agent

import (
	"slices"

	"kurabe"
)

// members are the assignments in force of the servers of an instance that this host has,
// by number.
func (a *Agent) members(owner kurabe.InstanceID) []kurabe.Assignment {
	var list []kurabe.Assignment
	for _, w := range a.workers.List() {
		if have, known := w.Assignment(); known && w.ID.Owner() == owner {
			list = append(list, have)
		}
	}
	slices.SortFunc(list, func(a, b kurabe.Assignment) int { return a.Instance.Number() - b.Instance.Number() })
	return list
}
