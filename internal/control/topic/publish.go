package topic

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/notify"
	"kurabe/internal/store"
)

// Publish queues a notification for the subscribers of its topic, and returns its id. A queue
// without room is a throttle: the publisher has to try again.
func (t Topics) Publish(ctx context.Context, n kurabe.Notification) (id string, err error) {
	if err := CheckNotification(n); err != nil {
		return "", err
	}
	n.ID, n.Time = kurabe.NewUUID(), t.Now()
	return n.ID, t.Update(ctx, func() (*store.Change, error) {
		if _, err := t.Find(n.TopicARN); err != nil {
			return nil, err
		}
		change := store.NewChange()
		if !change.Notify(t.View, n) {
			return nil, kurabe.Errorf(kurabe.CodeThrottled, "Rate exceeded: the notifications that wait for their subscribers fill the queue")
		}
		return change, nil
	})
}

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary|String\.Array)(\.[A-Za-z0-9_.-]+)?$`)
)

const subjectMax = 100

// CheckNotification says why a notification cannot be published.
func CheckNotification(n kurabe.Notification) error {
	size := len(n.Message) + len(n.Subject)
	switch {
	case n.Message == "":
		return invalid("Empty message")
	case n.MessageStructure != "" && n.MessageStructure != "json":
		return invalid("MessageStructure Reason: it is json, or absent")
	case len(n.Subject) > subjectMax || strings.ContainsFunc(n.Subject, func(r rune) bool { return r < ' ' || r > '~' }) || strings.HasPrefix(n.Subject, " "):
		return invalid("Subject Reason: it has at most %d ASCII characters, on one line, and does not begin with a space", subjectMax)
	}
	if n.MessageStructure == "json" {
		if _, err := notify.Structure(n.Message); err != nil {
			return invalid("Message Structure - %v", err)
		}
	}
	for name, a := range n.Attributes {
		size += len(name) + len(a.Type) + len(a.Text) + len(a.Binary)
		if err := checkAttribute(name, a); err != nil {
			return err
		}
	}
	if size > kurabe.NotificationBytesMax {
		return invalid("Message too long")
	}
	return nil
}

func checkAttribute(name string, a kurabe.MessageAttribute) error {
	// The type and the value of an attribute contradict each other, for which SNS has a code of its own.
	wrong := func(format string) error { return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, format, name) }
	kind, _, _ := strings.Cut(a.Type, ".")
	switch {
	case !attributeName.MatchString(name) || strings.HasPrefix(strings.ToLower(name), "aws.") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return invalid("The message attribute name %.60q is invalid", name)
	case !attributeType.MatchString(a.Type):
		return wrong("The message attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.")
	case kind == "Binary" && len(a.Binary) == 0 || kind != "Binary" && a.Text == "":
		return wrong("The message attribute '%s' must contain non-empty message attribute value for its type.")
	}
	if kind == "Number" {
		if _, err := strconv.ParseFloat(a.Text, 64); err != nil {
			return wrong("Could not cast message attribute '%s' value to number.")
		}
	}
	if a.Type == "String.Array" {
		var list []any
		if json.Unmarshal([]byte(a.Text), &list) != nil {
			return wrong("The message attribute '%s' of the type String.Array is no JSON array.")
		}
	}
	return nil
}
