package topic

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/notify"
	"kurabe/internal/store"
)

// Topics is the use cases.
type Topics struct {
	scope.Scope
	Guard notify.AddressGuard
	Mail  bool // mails can be sent
}

// Bounds. Those of topics and subscriptions are ours: all of them are in every server's memory.
const (
	topicsMax        = 1000
	subscriptionsMax = 300
	tagsMax          = 50
	displayNameMax   = 100
	policyBytesMax   = 30 << 10
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

func invalid(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid parameter: "+format, args...)
}

func notFound(noun string) error {
	return kurabe.Errorf(kurabe.CodeResourceNotFound, "%s does not exist", noun)
}

// ARN is that of a topic.
func (t Topics) ARN(name string) string {
	return "arn:aws:sns:" + t.Region + ":" + t.Account + ":" + name
}

// Find returns a topic.
func (t Topics) Find(arn string) (store.Record[kurabe.Topic], error) {
	if strings.Count(arn, ":") != 5 || !strings.HasPrefix(arn, "arn:aws:sns:") {
		return store.Record[kurabe.Topic]{}, invalid("TopicArn Reason: An ARN must have at least 6 elements, not %d", strings.Count(arn, ":")+1)
	}
	if err := t.checkRegion("TopicArn", arn); err != nil {
		return store.Record[kurabe.Topic]{}, err
	}
	r, ok := t.View.TopicByARN(arn)
	if !ok {
		return r, notFound("Topic")
	}
	return r, nil
}

// checkRegion refuses an ARN of another region, as SNS does: what has it is not absent, but elsewhere.
func (t Topics) checkRegion(parameter, arn string) error {
	if region := strings.Split(arn, ":")[3]; region != t.Region {
		return invalid("%s Reason: it is of the region %.40q, and this is %s", parameter, region, t.Region)
	}
	return nil
}

// Create makes a topic, or returns the one that is there and has the same settings.
func (t Topics) Create(ctx context.Context, name string, settings map[string]string, tags []kurabe.Tag) (arn string, err error) {
	switch {
	case strings.HasSuffix(name, ".fifo") || settings["FifoTopic"] == "true":
		return "", invalid("Attributes Reason: FIFO topics are not offered; a standard topic's notifications are delivered in order here, to each subscription")
	case !topicName.MatchString(name):
		return "", invalid("Topic Name Reason: it has 1 to 256 letters, digits, - and _")
	}
	if err := checkTags(tags); err != nil {
		return "", err
	}
	kept, err := t.settings(settings)
	if err != nil {
		return "", err
	}
	arn = t.ARN(name)
	return arn, t.Scope.Create(ctx, func() (*store.Change, error) {
		if old, there := t.View.Topic(name); there {
			for key, value := range kept {
				if old.Value.Settings[key] != value {
					return nil, invalid("Attributes Reason: Topic already exists with different attributes")
				}
			}
			if len(tags) > 0 && !sameTags(tags, old.Value.Tags) {
				return nil, invalid("Tags Reason: Topic already exists with different tags")
			}
			return nil, nil
		}
		if len(t.View.Topics()) >= topicsMax {
			return nil, kurabe.Errorf(kurabe.CodeInsufficientCapacity, "there are %d topics already, which is the limit", topicsMax)
		}
		var id [8]byte
		rand.Read(id[:]) // never fails
		return store.NewChange().PutTopic(kurabe.Topic{
			ID: kurabe.TopicID(hex.EncodeToString(id[:])), Name: name, ARN: arn, CreatedAt: t.Now(), Tags: tags, Settings: kept,
		}, 0), nil
	})
}

func sameTags(a, b []kurabe.Tag) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(t kurabe.Tag) bool { return !slices.Contains(b, t) })
}

// Delete removes a topic with its subscriptions; one that is not there is no error.
func (t Topics) Delete(ctx context.Context, arn string) error {
	return t.Update(ctx, func() (*store.Change, error) {
		r, err := t.Find(arn)
		if kurabe.CodeOf(err) == kurabe.CodeResourceNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return store.NewChange().DeleteTopic(r.Value.Name, r.ModRevision), nil
	})
}

// change writes a topic after an edit.
func (t Topics) change(ctx context.Context, arn string, edit func(*kurabe.Topic) error) error {
	return t.Update(ctx, func() (*store.Change, error) {
		r, err := t.Find(arn)
		if err != nil {
			return nil, err
		}
		if err := edit(&r.Value); err != nil {
			return nil, err
		}
		return store.NewChange().PutTopic(r.Value, r.ModRevision), nil
	})
}

// Set sets one of SNS's attributes of a topic; "" takes it away.
func (t Topics) Set(ctx context.Context, arn, name, value string) error {
	kept, err := t.settings(map[string]string{name: value})
	if err != nil {
		return err
	}
	return t.change(ctx, arn, func(topic *kurabe.Topic) error {
		topic.Settings = with(topic.Settings, name, kept[name])
		return nil
	})
}

// with returns a copy of a map with one value, or without it if that is "".
func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	if out[key] = value; value == "" {
		delete(out, key)
	}
	return out
}

// settings checks attributes of a topic, and returns those that are kept.
func (t Topics) settings(all map[string]string) (map[string]string, error) {
	kept := map[string]string{}
	for name, value := range all {
		var err error
		switch name {
		case "DisplayName":
			if len([]rune(value)) > displayNameMax || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
				err = invalid("DisplayName Reason: it has at most %d characters, on one line", displayNameMax)
			}
		case "SignatureVersion":
			if value != "" && value != "1" && value != "2" {
				err = invalid("SignatureVersion Reason: it is 1 (SHA-1) or 2 (SHA-256)")
			}
		case "DeliveryPolicy":
			if _, failed := notify.ParseTopicPolicy(value); failed != nil {
				err = invalid("DeliveryPolicy Reason: %v", failed)
			}
		case "Policy":
			err = t.checkPolicy(value)
		default:
			if err = refuseSetting(name, value); err == nil {
				continue
			}
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

// truths are attributes of topics of which one value is true here anyway, with the reason.
var truths = map[string]struct{ value, reason string }{
	"FifoTopic":                 {"false", "FIFO topics are not offered"},
	"ContentBasedDeduplication": {"false", "FIFO topics are not offered"},
	"FifoThroughputScope":       {"", "FIFO topics are not offered"},
	"TracingConfig":             {"PassThrough", "there is no tracing"},
	"KmsMasterKeyId":            {"", "notifications are not encrypted in the state store; encrypt the disk that it is on"},
	"ArchivePolicy":             {"", "notifications are not archived"},
	"DataProtectionPolicy":      {"", "notifications are not searched for personal data"},
}

func refuseSetting(name, value string) error {
	truth, known := truths[name]
	switch {
	case strings.HasSuffix(name, "FeedbackRoleArn") || strings.HasSuffix(name, "FeedbackSampleRate"):
		known, truth.reason = true, "deliveries are counted on /metrics, and what is given up is an event; there is no log of each"
	case !known:
		return invalid("AttributeName Reason: %.60q is no attribute of a topic that can be set", name)
	}
	if value == "" || value == truth.value {
		return nil
	}
	return invalid("%s Reason: %s", name, truth.reason)
}

// checkPolicy accepts a policy that is true here: the account's owner may do everything, and
// nobody else has credentials. So what allows something to the owner or, under a condition or to
// a service, to others, changes nothing; a denial would not be enforced.
func (t Topics) checkPolicy(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > policyBytesMax {
		return invalid("Policy Reason: it has more than %d bytes", policyBytesMax)
	}
	var policy struct {
		Statement json.RawMessage
	}
	if json.Unmarshal([]byte(text), &policy) != nil || policy.Statement == nil {
		return invalid("Policy Reason: it is no JSON object with statements")
	}
	type statement struct {
		Effect       string
		Principal    json.RawMessage
		NotPrincipal json.RawMessage
		Condition    map[string]any
	}
	var list []statement
	if json.Unmarshal(policy.Statement, &list) != nil {
		list = make([]statement, 1)
		if json.Unmarshal(policy.Statement, &list[0]) != nil {
			return invalid("Policy Reason: its statements are not of the form of a policy")
		}
	}
	for _, s := range list {
		open := strings.Contains(string(s.Principal), `"*"`) && !strings.Contains(string(s.Principal), "Service")
		switch {
		case s.Effect != "Allow":
			return invalid("Policy Reason: denials are not enforced: whoever has the service's credentials may do everything, and nobody else may do anything")
		case s.NotPrincipal != nil || s.Principal == nil || open && len(s.Condition) == 0:
			return invalid("Policy Reason: nobody without the service's credentials can publish or subscribe; name the account %s or a service as the Principal, or add a Condition", t.Account)
		}
	}
	return nil
}

// Tag adds tags to a topic, or replaces those with the same keys.
func (t Topics) Tag(ctx context.Context, arn string, tags []kurabe.Tag) error {
	if err := checkTags(tags); err != nil {
		return err
	}
	return t.change(ctx, arn, func(topic *kurabe.Topic) error {
		topic.Tags = kurabe.WithTags(topic.Tags, tags)
		return checkTags(topic.Tags)
	})
}

// Untag removes tags of a topic by their keys.
func (t Topics) Untag(ctx context.Context, arn string, keys []string) error {
	return t.change(ctx, arn, func(topic *kurabe.Topic) error {
		topic.Tags = slices.DeleteFunc(slices.Clone(topic.Tags), func(old kurabe.Tag) bool { return slices.Contains(keys, old.Key) })
		return nil
	})
}

func checkTags(tags []kurabe.Tag) error {
	if len(tags) > tagsMax {
		return invalid("Tags Reason: a topic has at most %d tags", tagsMax)
	}
	seen := map[string]bool{}
	for _, tag := range tags {
		key := []rune(tag.Key)
		if len(key) == 0 || len(key) > 128 || len([]rune(tag.Value)) > 256 || strings.HasPrefix(strings.ToLower(tag.Key), "aws:") || seen[tag.Key] {
			return invalid("Tags Reason: a key has 1 to 128 characters, is there once and does not begin with aws:, and a value has at most 256")
		}
		seen[tag.Key] = true
	}
	return nil
}
