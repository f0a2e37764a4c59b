package notify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"kurabe"
)

// TokenLifetime is for how long a subscription may be confirmed.
const TokenLifetime = 3 * 24 * time.Hour

// The types of documents.
const (
	typeNotification = "Notification"
	typeConfirmation = "SubscriptionConfirmation"
	typeEnded        = "UnsubscribeConfirmation"
)

// document is SNS's JSON, its members in SNS's order.
type document struct {
	Type              string
	MessageID         string                       `json:"MessageId"`
	Token             string                       `json:",omitempty"`
	TopicARN          string                       `json:"TopicArn"`
	Subject           string                       `json:",omitempty"`
	Message           string                       `json:""`
	SubscribeURL      string                       `json:",omitempty"`
	Timestamp         string                       `json:""`
	SignatureVersion  string                       `json:",omitempty"`
	Signature         string                       `json:",omitempty"`
	SigningCertURL    string                       `json:",omitempty"`
	UnsubscribeURL    string                       `json:",omitempty"`
	MessageAttributes map[string]documentAttribute `json:",omitempty"`
}

type documentAttribute struct {
	Type  string
	Value any
}

// message is what one subscription is sent, whatever the protocol.
type message struct {
	document
	topic        kurabe.Topic
	subscription kurabe.Subscription
	raw          bool
	policy       Policy
}

func timestamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// links makes the addresses that documents name.
type links struct {
	base string // of the service, as its users reach it
}

func (l links) of(action string, pairs ...string) string {
	q := url.Values{"Action": {action}}
	for n := 0; n < len(pairs); n += 2 {
		q.Set(pairs[n], pairs[n+1])
	}
	return l.base + "/?" + q.Encode()
}

// confirmation asks a subscriber to agree, or whether a subscription that a link has ended is to go on.
// Its id is the token's, so that one that is sent again has the same.
func (l links) confirmation(t kurabe.Topic, s kurabe.Subscription) message {
	sum := sha256.Sum256([]byte(s.Token))
	h := hex.EncodeToString(sum[:16])
	m := message{topic: t, subscription: s, policy: Effective(t.Settings["DeliveryPolicy"], ""), document: document{
		Type: typeConfirmation, MessageID: fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:]), Token: s.Token, TopicARN: t.ARN,
		Message:      "You have chosen to subscribe to the topic " + t.ARN + ".\nTo confirm the subscription, visit the SubscribeURL included in this message.",
		SubscribeURL: l.of("ConfirmSubscription", "TopicArn", t.ARN, "Token", s.Token), Timestamp: timestamp(s.TokenUntil.Add(-TokenLifetime)),
	}}
	if !s.EndedAt.IsZero() {
		m.Type = typeEnded
		m.Message = "You have chosen to deactivate subscription " + s.ARN(t) + ".\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
	}
	return m
}

// notification is what a subscription is sent of one.
func (l links) notification(t kurabe.Topic, s kurabe.Subscription, n kurabe.Notification) message {
	m := message{topic: t, subscription: s, raw: s.Settings["RawMessageDelivery"] == "true", policy: Effective(t.Settings["DeliveryPolicy"], s.Settings["DeliveryPolicy"])}
	m.document = document{
		Type: typeNotification, MessageID: n.ID, TopicARN: n.TopicARN, Subject: n.Subject, Message: Text(n, s.Protocol), Timestamp: timestamp(n.Time),
		UnsubscribeURL: l.of("Unsubscribe", "SubscriptionArn", s.ARN(t)),
	}
	for name, a := range n.Attributes {
		if m.MessageAttributes == nil {
			m.MessageAttributes = map[string]documentAttribute{}
		}
		var value any = a.Text
		if a.Binary != nil {
			value = a.Binary // base64
		}
		m.MessageAttributes[name] = documentAttribute{a.Type, value}
	}
	return m
}

// Text is the text of a notification for a protocol: with the structure json it has one for each.
func Text(n kurabe.Notification, protocol string) string {
	if n.MessageStructure != "json" {
		return n.Message
	}
	texts, err := Structure(n.Message)
	if text, ok := texts[protocol]; ok && err == nil {
		return text
	}
	return texts["default"]
}

// Structure reads a message of the structure json.
func Structure(message string) (map[string]string, error) {
	var members map[string]any
	if err := json.Unmarshal([]byte(message), &members); err != nil || members == nil {
		return nil, fmt.Errorf("the message of the structure json is no JSON object")
	}
	texts := map[string]string{}
	for name, member := range members {
		if text, ok := member.(string); ok {
			texts[name] = text
		}
	}
	if texts["default"] == "" {
		return nil, fmt.Errorf("the message of the structure json has no text \"default\"")
	}
	return texts, nil
}

// signed returns the text that a signature is of.
func (d document) signed() string {
	var b bytes.Buffer
	for _, member := range []struct{ name, value string }{
		{"Message", d.Message}, {"MessageId", d.MessageID}, {"Subject", d.Subject}, {"SubscribeURL", d.SubscribeURL},
		{"Timestamp", d.Timestamp}, {"Token", d.Token}, {"TopicArn", d.TopicARN}, {"Type", d.Type},
	} {
		// Message is the only one that may be empty and is signed all the same.
		if member.value != "" || member.name == "Message" {
			b.WriteString(member.name + "\n" + member.value + "\n")
		}
	}
	return b.String()
}

// marshal writes JSON as SNS does, with <, > and & as they are.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // of strings, into memory
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
