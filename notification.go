package kurabe

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TopicID tells a topic from others that had its name before.
type TopicID string

// Topic is an SNS topic: whoever subscribed to it is sent its notifications, in the order in
// which they were stored.
type Topic struct {
	ID        TopicID           `json:"id"`
	Name      string            `json:"name"`
	ARN       string            `json:"arn"`
	CreatedAt time.Time         `json:"createdAt"`
	Tags      []Tag             `json:"tags,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"` // SNS's attributes that were set, by their names
}

// SubscriptionID is a UUID, the last part of the ARN. It is unknown to strangers: who has it
// may unsubscribe.
type SubscriptionID string

// Subscription is an endpoint to which a topic's notifications are sent.
type Subscription struct {
	ID        SubscriptionID    `json:"id"`
	Topic     TopicID           `json:"topic"`
	Protocol  string            `json:"protocol"` // SNS's: http, https, email, email-json
	Endpoint  string            `json:"endpoint"`
	CreatedAt time.Time         `json:"createdAt"`
	Settings  map[string]string `json:"settings,omitempty"` // SNS's attributes that were set, by their names
	// ConfirmedAt is when the endpoint has agreed, zero before. It is sent no notification that
	// is older.
	ConfirmedAt time.Time `json:"confirmedAt,omitzero"`
	// ConfirmedByOwner: the confirmation was signed with the service's credentials.
	ConfirmedByOwner bool `json:"confirmedByOwner,omitempty"`
	// SignedUnsubscribe: only a signed request ends it.
	SignedUnsubscribe bool `json:"signedUnsubscribe,omitempty"`
	// EndedAt is when a link has ended it, zero before. It is unconfirmed again, and until TokenUntil its
	// endpoint may take that back.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Token is that of the newest request to confirm, valid until TokenUntil. Who has it may
	// confirm.
	Token      string    `json:"token,omitempty"`
	TokenUntil time.Time `json:"tokenUntil,omitzero"`
}

// ARN is that of a subscription to a topic.
func (s Subscription) ARN(t Topic) string { return t.ARN + ":" + string(s.ID) }

// MessageAttribute is a typed value beside the text of a notification.
type MessageAttribute struct {
	Type   string `json:"type"` // String, String.Array, Number or Binary, and what the user adds after a dot
	Text   string `json:"text,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// Notification is a message to a topic.
type Notification struct {
	ID               string                      `json:"id"` // MessageId: NewUUID. A second delivery has the same
	TopicARN         string                      `json:"topicARN"`
	Subject          string                      `json:"subject,omitempty"` // at most 100 characters
	Message          string                      `json:"message"`           // at most NotificationBytesMax
	MessageStructure string                      `json:"messageStructure,omitempty"`
	Attributes       map[string]MessageAttribute `json:"attributes,omitempty"`
	Time             time.Time                   `json:"time"`
}

// NotificationBytesMax is SNS's bound of a message with its attributes.
const NotificationBytesMax = 256 << 10

// NewUUID makes a random UUID.
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// DeliveryCursor is how far the deliveries to a subscription have come.
type DeliveryCursor struct {
	Topic        TopicID        `json:"topic"`
	Subscription SubscriptionID `json:"subscription"`
	// Revision and Key are the place of the last notification that is done with.
	Revision int64  `json:"revision,omitempty"`
	Key      string `json:"key,omitempty"`
	// Attempts were made to deliver the next one, all in vain; the next is due at RetryAt.
	Attempts int       `json:"attempts,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// Asked is the token of the newest request to confirm that is done with.
	Asked string `json:"asked,omitempty"`
	// GivenUp counts the notifications that were not delivered; an event has told Told of them,
	// the newest at ToldAt.
	GivenUp int       `json:"givenUp,omitempty"`
	Told    int       `json:"told,omitempty"`
	ToldAt  time.Time `json:"toldAt,omitzero"`
}

// SigningCertificate is that of a key with which a server signs notifications. Every server
// shows those of all.
type SigningCertificate struct {
	Name  string    `json:"name"` // of its file
	PEM   string    `json:"pem"`
	Until time.Time `json:"until"`
}

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
