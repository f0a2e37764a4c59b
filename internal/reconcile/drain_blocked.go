package reconcile

import (
	"fmt"
	"strings"

	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// leftAlone says whether the records of an instance do not say what it is. What would be
// planned from them could be a second writer, or the end of data that is in use; so it
// stays as it is until they are repaired. Its hosts keep to what they were told last. A
// person must act, and hears of it once.
func (l *Loop) leftAlone(i *store.Instance) bool {
	why := whyLeftAlone(i)
	if why == "" {
		delete(l.told, i.ID)
		return false
	}
	if l.told[i.ID] != why {
		l.told[i.ID] = why
		l.Log.Error("instance not planned", logkey.Instance, i.ID, logkey.Reason, why)
	}
	return true
}

// whyLeftAlone says in words what is wrong with the records of an instance, "" when nothing
// is.
func whyLeftAlone(i *store.Instance) string {
	if len(i.Unreadable) > 0 {
		return "no changes until these unreadable records are repaired: " + strings.Join(i.Unreadable, ", ")
	}
	// A writer that no host was told of would be placed, as if the instance were new.
	if _, assigned := i.AssignmentOf(i.Writer()); i.Group != nil && !assigned {
		return fmt.Sprintf("no changes until its records are repaired: the group names %s as primary, but no host has an assignment for it", i.Writer())
	}
	return ""
}
