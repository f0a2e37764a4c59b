package topic

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/notify"
	"kurabe/internal/notify/filter"
	"kurabe/internal/store"
)

// endpointMax is SNS's bound of an endpoint.
const endpointMax = 2048

// whyNot says why protocols of SNS are not offered.
var whyNot = map[string]string{
	"sms": "text messages need a contract with a carrier", "application": "there are no push services of mobile systems", "lambda": "there are no functions",
	"sqs": "there are no queues", "firehose": "there are no delivery streams",
}

// FindSubscription returns a subscription and its topic.
func (t Topics) FindSubscription(arn string) (topic store.Record[kurabe.Topic], sub store.Record[kurabe.Subscription], err error) {
	end := strings.LastIndexByte(arn, ':')
	if strings.Count(arn, ":") != 6 {
		return topic, sub, invalid("SubscriptionArn Reason: An ARN must have at least 7 elements")
	}
	if err := t.checkRegion("SubscriptionArn", arn); err != nil {
		return topic, sub, err
	}
	topic, known := t.View.TopicByARN(arn[:end])
	if known {
		sub, known = t.View.Subscription(topic.Value.ID, kurabe.SubscriptionID(arn[end+1:]))
		known = known && sub.Value.EndedAt.IsZero()
	}
	if !known {
		return topic, sub, notFound("Subscription")
	}
	return topic, sub, nil
}

// Subscribe makes a subscription that waits for its confirmation, or returns the one with the same
// endpoint; one that still waits is asked again.
func (t Topics) Subscribe(ctx context.Context, arn, protocol, endpoint string, settings map[string]string) (topic kurabe.Topic, sub kurabe.Subscription, err error) {
	if err := t.checkEndpoint(protocol, endpoint); err != nil {
		return topic, sub, err
	}
	kept, err := subscriptionSettings(protocol, settings)
	if err != nil {
		return topic, sub, err
	}
	return topic, sub, t.Scope.Create(ctx, func() (*store.Change, error) {
		found, err := t.Find(arn)
		if err != nil {
			return nil, err
		}
		topic = found.Value
		mod := int64(0)
		for _, old := range t.View.Subscriptions(topic.ID) {
			if old.Value.Protocol == protocol && old.Value.Endpoint == endpoint {
				sub, mod = old.Value, old.ModRevision
			}
		}
		if !sub.EndedAt.IsZero() {
			sub.EndedAt, sub.Settings = time.Time{}, kept
		}
		if mod != 0 && len(settings) > 0 && !maps.Equal(kept, sub.Settings) {
			return nil, invalid("Attributes Reason: Subscription already exists with different attributes")
		}
		if mod != 0 && !sub.ConfirmedAt.IsZero() {
			return nil, nil
		}
		if mod == 0 {
			if t.count() >= subscriptionsMax {
				return nil, kurabe.Errorf(kurabe.CodeInstanceQuota, "there are %d subscriptions already, which is the limit", subscriptionsMax)
			}
			sub = kurabe.Subscription{ID: kurabe.SubscriptionID(kurabe.NewUUID()), Topic: topic.ID, Protocol: protocol, Endpoint: endpoint, CreatedAt: t.Now(), Settings: kept}
		}
		t.ask(&sub)
		return store.NewChange().RequireTopic(topic.Name, found.ModRevision).PutSubscription(sub, mod), nil
	})
}

// ask gives a subscription a new token, which its endpoint is sent.
func (t Topics) ask(sub *kurabe.Subscription) {
	var token [32]byte
	rand.Read(token[:]) // never fails
	sub.Token, sub.TokenUntil = hex.EncodeToString(token[:]), t.Now().Add(notify.TokenLifetime)
}

func (t Topics) count() (n int) {
	for _, topic := range t.View.Topics() {
		n += len(t.View.Subscriptions(topic.Value.ID))
	}
	return n
}

// checkEndpoint refuses what nothing could be sent to. That a name leads to no such address is
// checked when a connection is made.
func (t Topics) checkEndpoint(protocol, endpoint string) error {
	switch protocol {
	case "http", "https":
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != protocol || u.Hostname() == "" || len(endpoint) > endpointMax || u.Fragment != "" && !notify.IsChat(endpoint) {
			return invalid("Endpoint Reason: it must be a URL that begins with %s://, of at most %d bytes; at its end #%s may stand, for the webhook of a chat", protocol, endpointMax, notify.ChatFragment)
		}
		if address, err := netip.ParseAddr(u.Hostname()); err == nil {
			port, _ := strconv.ParseUint(u.Port(), 10, 16)
			if err := t.Guard.Check(netip.AddrPortFrom(address, uint16(port))); err != nil {
				return invalid("Endpoint Reason: %v", err)
			}
		}
	case "email", "email-json":
		a, err := mail.ParseAddress(endpoint)
		if err != nil || a.Address != endpoint || len(endpoint) > 320 {
			return invalid("Endpoint Reason: Invalid email endpoint")
		}
		if !t.Mail {
			return invalid("Protocol Reason: mails need a server to send them: start the service with --smtp-server and --smtp-from; without one, an https endpoint can be the webhook of a chat (URL#%s)", notify.ChatFragment)
		}
	default:
		if why := whyNot[protocol]; why != "" {
			return invalid("Protocol Reason: %s is not offered: %s; http, https, email and email-json are", protocol, why)
		}
		return invalid("Protocol Reason: Does not support this protocol string: %.40s", protocol)
	}
	return nil
}

// Confirm makes a subscription one that notifications are sent to. byOwner says that the request
// was signed, signedEnd that only a signed one may end it.
func (t Topics) Confirm(ctx context.Context, arn, token string, byOwner, signedEnd bool) (subscription string, err error) {
	return subscription, t.Update(ctx, func() (*store.Change, error) {
		topic, err := t.Find(arn)
		if err != nil {
			return nil, err
		}
		for _, r := range t.View.Subscriptions(topic.Value.ID) {
			sub := r.Value
			if sub.Token == "" || subtle.ConstantTimeCompare([]byte(sub.Token), []byte(token)) != 1 || sub.TokenUntil.Before(t.Now()) {
				continue
			}
			subscription = sub.ARN(topic.Value)
			if !sub.ConfirmedAt.IsZero() { // a link may be opened twice
				return nil, nil
			}
			sub.ConfirmedAt, sub.ConfirmedByOwner, sub.SignedUnsubscribe, sub.EndedAt = t.Now(), byOwner, signedEnd && byOwner, time.Time{}
			return store.NewChange().PutSubscription(sub, r.ModRevision), nil
		}
		return nil, invalid("Token")
	})
}

// Unsubscribe ends a subscription; signed says that the request was. Of a link, which strangers may have
// opened too, the endpoint is told, with a token that takes it back.
func (t Topics) Unsubscribe(ctx context.Context, arn string, signed bool) error {
	return t.Update(ctx, func() (*store.Change, error) {
		_, sub, err := t.FindSubscription(arn)
		switch {
		case kurabe.CodeOf(err) == kurabe.CodeResourceNotFound:
			return nil, nil // one that has ended is no error
		case err != nil:
			return nil, err
		case sub.Value.SignedUnsubscribe && !signed:
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "this subscription was confirmed with AuthenticateOnUnsubscribe: only a signed request can end it")
		case sub.Value.ConfirmedAt.IsZero() && !signed:
			return nil, invalid("SubscriptionArn Reason: the subscription is not confirmed")
		case !signed:
			next := sub.Value
			next.ConfirmedAt, next.EndedAt = time.Time{}, t.Now()
			t.ask(&next)
			return store.NewChange().PutSubscription(next, sub.ModRevision), nil
		}
		return store.NewChange().DeleteSubscription(sub.Value, sub.ModRevision), nil
	})
}

// SetSubscription sets one of SNS's attributes of a subscription; "" takes it away.
func (t Topics) SetSubscription(ctx context.Context, arn, name, value string) error {
	return t.Update(ctx, func() (*store.Change, error) {
		_, sub, err := t.FindSubscription(arn)
		if err != nil {
			return nil, err
		}
		all, err := subscriptionSettings(sub.Value.Protocol, with(sub.Value.Settings, name, value))
		if err == nil && value == "" {
			_, err = subscriptionSettings(sub.Value.Protocol, map[string]string{name: value})
		}
		if err != nil {
			return nil, err
		}
		sub.Value.Settings = all
		return store.NewChange().PutSubscription(sub.Value, sub.ModRevision), nil
	})
}

// subscriptionSettings checks attributes of a subscription, and returns those that are kept.
func subscriptionSettings(protocol string, all map[string]string) (map[string]string, error) {
	kept := map[string]string{}
	for name, value := range all {
		var err error
		switch name {
		case "RawMessageDelivery":
			if value != "true" && value != "false" && value != "" {
				err = invalid("RawMessageDelivery Reason: it is true or false")
			} else if value == "true" && !strings.HasPrefix(protocol, "http") {
				err = invalid("RawMessageDelivery Reason: Delivery protocol [%s] does not support raw message delivery.", protocol)
			}
		case "FilterPolicyScope":
			if !slices.Contains([]string{"", "MessageAttributes", "MessageBody"}, value) {
				err = invalid("FilterPolicyScope Reason: it is MessageAttributes or MessageBody")
			}
		case "FilterPolicy":
			if value == "" || value == "{}" && all["FilterPolicyScope"] != "MessageBody" {
				continue
			}
			if _, failed := filter.Parse(value, all["FilterPolicyScope"] == "MessageBody"); failed != nil {
				err = invalid("FilterPolicy Reason: %v", failed)
			}
		case "DeliveryPolicy":
			if _, failed := notify.ParsePolicy(value); failed != nil {
				err = invalid("DeliveryPolicy Reason: %v", failed)
			}
		case "RedrivePolicy":
			if value != "" {
				err = invalid("RedrivePolicy Reason: there are no queues to which undelivered notifications could go; an event says what was given up")
			}
		case "SubscriptionRoleArn", "ReplayPolicy":
			if value != "" {
				err = invalid("%s Reason: there are no delivery streams and no archives", name)
			}
		default:
			err = invalid("AttributeName Reason: %.60q is no attribute of a subscription that can be set", name)
		}
		if err != nil {
			return nil, err
		}
		if value != "" {
			kept[name] = value
		}
	}
	return kept, nil
}

// OwnAddresses lists the addresses of this machine.
func OwnAddresses() (list []netip.Addr) {
	all, _ := net.InterfaceAddrs() // none known: those of loopback are known anyway
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr())
		}
	}
	return list
}

// EffectiveTopicPolicy is how notifications of a topic are delivered, as SNS's JSON.
func EffectiveTopicPolicy(t kurabe.Topic) string {
	p, _ := notify.ParseTopicPolicy(t.Settings["DeliveryPolicy"]) // checked when it was set
	text, _ := json.Marshal(p)                                    // of numbers and texts
	return string(text)
}

// EffectivePolicy is how notifications are delivered to a subscription, as SNS's JSON.
func EffectivePolicy(t kurabe.Topic, s kurabe.Subscription) string {
	text, _ := json.Marshal(notify.Effective(t.Settings["DeliveryPolicy"], s.Settings["DeliveryPolicy"])) // of numbers and texts
	return string(text)
}
