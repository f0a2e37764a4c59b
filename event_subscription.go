package kurabe

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// EventSubscription has events sent to a topic.
type EventSubscription struct {
	Name       string    `json:"name"` // as the user wrote it; unique whatever the case
	TopicARN   string    `json:"topicARN"`
	SourceType string    `json:"sourceType,omitempty"` // "" is every type
	Sources    []string  `json:"sources,omitempty"`    // names in lower case, none: every source
	Categories []string  `json:"categories,omitempty"` // none: every category
	Disabled   bool      `json:"disabled,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
	// Since is the place of the first event that may be sent.
	Since EventPlace `json:"since,omitzero"`
	Tags  []Tag      `json:"tags,omitempty"`
}

// Key is the name under which it is stored.
func (s EventSubscription) Key() string { return strings.ToLower(s.Name) }

// Matches says whether an event is sent.
func (s EventSubscription) Matches(e Event) bool {
	wanted := func(c string) bool { return slices.Contains(s.Categories, c) }
	return !s.Disabled && (s.SourceType == "" || s.SourceType == e.SourceType) &&
		(len(s.Sources) == 0 || slices.Contains(s.Sources, strings.ToLower(e.Source))) &&
		(len(s.Categories) == 0 || slices.ContainsFunc(e.Categories, wanted))
}

// EventPlace is the place of an event in the order in which events were committed, which the
// clocks of several servers do not change.
type EventPlace struct {
	Revision int64  `json:"revision"` // of the store
	Seq      string `json:"seq,omitempty"`
}

// Compare is negative when p comes before o.
func (p EventPlace) Compare(o EventPlace) int {
	return cmp.Or(cmp.Compare(p.Revision, o.Revision), strings.Compare(p.Seq, o.Seq))
}

// EventCursor is how far events were queued for the topics of their subscriptions.
type EventCursor struct {
	Passed EventPlace `json:"passed"`
	// Behind has the places of the subscriptions, by their keys, whose topics had no room.
	Behind map[string]EventPlace `json:"behind,omitempty"`
}
