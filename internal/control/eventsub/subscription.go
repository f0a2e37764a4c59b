package eventsub

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

// MaxSubscriptions is more than RDS's default quota. Each event is compared with all of them, and
// one that matches all must fit into a transaction.
const MaxSubscriptions = 50

// maxSources bounds the sources of one subscription.
const maxSources = 100

// subscriptionName is the rule of Terraform's provider; RDS's documents give the length alone.
var subscriptionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,254}$`)

// Statuses of a subscription, in RDS's words. A change is in force once it is stored, so creating,
// modifying and deleting are told in answers only.
const (
	StatusActive  = "active"
	StatusNoTopic = "topic-not-exist"
)

// Subscriptions is the use cases.
type Subscriptions struct {
	scope.Scope
	// SourceExists says whether there is a source of a type with a name.
	SourceExists func(sourceType, name string) bool
}

// EventSubscription returns a subscription by its name or ARN, whatever the case.
func (c Subscriptions) EventSubscription(name string) (kurabe.EventSubscription, error) {
	r, err := c.find(name)
	return r.Value, err
}

// EventSubscriptions returns every subscription, by name.
func (c Subscriptions) EventSubscriptions() []kurabe.EventSubscription {
	var list []kurabe.EventSubscription
	for _, r := range c.View.EventSubscriptions() {
		list = append(list, r.Value)
	}
	return list
}

func (c Subscriptions) find(name string) (store.Record[kurabe.EventSubscription], error) {
	s, ok := c.View.EventSubscription(strings.ToLower(strings.TrimPrefix(name, c.ARN("es", ""))))
	if !ok {
		return s, kurabe.Errorf(kurabe.CodeSubscriptionNotFound, "Event Subscription %s not found.", name)
	}
	return s, nil
}

// SubscriptionStatus is RDS's status of a subscription.
func (c Subscriptions) SubscriptionStatus(s kurabe.EventSubscription) string {
	if _, ok := c.View.TopicByARN(s.TopicARN); !ok {
		return StatusNoTopic
	}
	return StatusActive
}

// CreateEventSubscription stores a new subscription. The topic is told that it will be sent events,
// as RDS does.
func (c Subscriptions) CreateEventSubscription(ctx context.Context, s kurabe.EventSubscription) (kurabe.EventSubscription, error) {
	if !subscriptionName.MatchString(s.Name) {
		return s, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The parameter SubscriptionName must have 1 to 254 letters, digits and hyphens")
	}
	if err := kurabe.CheckTags(s.Tags); err != nil {
		return s, err
	}
	s.CreatedAt = c.Now().UTC()
	sources := s.Sources
	s.Sources = nil
	for _, source := range sources {
		if err := c.addSource(&s, source); err != nil {
			return s, err
		}
	}
	if err := c.check(&s); err != nil {
		return s, err
	}
	return s, c.Create(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		if _, taken := c.View.EventSubscription(s.Key()); taken {
			return nil, kurabe.Errorf(kurabe.CodeSubscriptionExists, "Event Subscription %s already exists.", s.Name)
		}
		if len(c.View.EventSubscriptions()) >= MaxSubscriptions {
			return nil, kurabe.Errorf(kurabe.CodeSubscriptionQuota, "Cannot create more than %d event subscriptions", MaxSubscriptions)
		}
		s.Since = kurabe.EventPlace{Revision: revision + 1}
		change := store.NewChange().PutEventSubscription(s, 0).RequireEventSubscriptionsUnwritten(revision)
		return c.announce(change, s), nil
	})
}

// announce has the topic of a subscription told of it.
func (c Subscriptions) announce(change *store.Change, s kurabe.EventSubscription) *store.Change {
	of := ""
	if s.SourceType != "" {
		of = " of type " + s.SourceType
	}
	return change.NotifyOrCount(c.View, kurabe.Notification{
		TopicARN: s.TopicARN, Subject: subject, Time: c.Now().UTC(),
		Message: fmt.Sprintf("This is a message to notify that RDS will attempt to send you event notifications%s to the topic %s", of, s.TopicARN),
	})
}

// Edit is a change of a subscription; nil fields stay.
type Edit struct {
	TopicARN, SourceType *string
	Categories           []string // empty, not nil: every category
	Enabled              *bool
}

// ModifyEventSubscription changes all but the sources.
func (c Subscriptions) ModifyEventSubscription(ctx context.Context, name string, edit Edit) (kurabe.EventSubscription, error) {
	return c.change(ctx, name, func(s *kurabe.EventSubscription) error {
		if edit.TopicARN != nil {
			s.TopicARN = *edit.TopicARN
		}
		if edit.SourceType != nil {
			s.SourceType = *edit.SourceType
		}
		if edit.Categories != nil {
			s.Categories = edit.Categories
		}
		if edit.Enabled != nil {
			s.Disabled = !*edit.Enabled
		}
		if len(s.Sources) > 0 && s.SourceType == "" {
			return errNoType
		}
		return c.check(s)
	})
}

// AddSource has a subscription send events of one more source.
func (c Subscriptions) AddSource(ctx context.Context, name, source string) (kurabe.EventSubscription, error) {
	return c.change(ctx, name, func(s *kurabe.EventSubscription) error { return c.addSource(s, source) })
}

// RemoveSource takes a source off a subscription. Without any it sends events of all.
func (c Subscriptions) RemoveSource(ctx context.Context, name, source string) (kurabe.EventSubscription, error) {
	return c.change(ctx, name, func(s *kurabe.EventSubscription) error {
		at := slices.Index(s.Sources, strings.ToLower(source))
		if at < 0 {
			return kurabe.Errorf(kurabe.CodeSourceNotFound, "%s is not a source of the event subscription %s", source, s.Name)
		}
		s.Sources = slices.Delete(slices.Clone(s.Sources), at, at+1)
		return nil
	})
}

// EditSubscriptionTags replaces the tags of a subscription.
func (c Subscriptions) EditSubscriptionTags(ctx context.Context, name string, edit func([]kurabe.Tag) ([]kurabe.Tag, error)) error {
	_, err := c.change(ctx, name, func(s *kurabe.EventSubscription) (err error) {
		s.Tags, err = edit(s.Tags)
		return err
	})
	return err
}

// DeleteEventSubscription removes a subscription. What is queued for its topic is sent.
func (c Subscriptions) DeleteEventSubscription(ctx context.Context, name string) (kurabe.EventSubscription, error) {
	var gone kurabe.EventSubscription
	return gone, c.Update(ctx, func() (*store.Change, error) {
		r, err := c.find(name)
		if err != nil {
			return nil, err
		}
		gone = r.Value
		return store.NewChange().DeleteEventSubscription(r.Value, r.ModRevision), nil
	})
}

func (c Subscriptions) change(ctx context.Context, name string, edit func(*kurabe.EventSubscription) error) (s kurabe.EventSubscription, err error) {
	err = c.Update(ctx, func() (*store.Change, error) {
		r, err := c.find(name)
		if err != nil {
			return nil, err
		}
		s = r.Value
		if err := edit(&s); err != nil {
			return nil, err
		}
		change := store.NewChange().PutEventSubscription(s, r.ModRevision)
		if s.TopicARN != r.Value.TopicARN {
			c.announce(change, s)
		}
		return change, nil
	})
	return s, err
}

var errNoType = kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Cannot specify source identifiers without a source type")

// addSource adds a source that exists; one that is there already stays as it is.
func (c Subscriptions) addSource(s *kurabe.EventSubscription, name string) error {
	folded := strings.ToLower(name)
	switch {
	case s.SourceType == "":
		return errNoType
	case slices.Contains(s.Sources, folded):
		return nil
	case !c.SourceExists(s.SourceType, folded):
		return kurabe.Errorf(kurabe.CodeSourceNotFound, "There is no %s %s", s.SourceType, name)
	case len(s.Sources) >= maxSources:
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "An event subscription has at most %d sources", maxSources)
	}
	s.Sources = append(slices.Clone(s.Sources), folded)
	return nil
}

// check checks topic, source type and categories, and writes the categories as RDS does.
func (c Subscriptions) check(s *kurabe.EventSubscription) error {
	if err := c.checkTopic(s.TopicARN); err != nil {
		return err
	}
	var types, known []string
	for _, of := range event.Categories {
		types = append(types, of.SourceType)
		if s.SourceType == "" || s.SourceType == of.SourceType {
			known = append(known, of.Categories...)
		}
	}
	if s.SourceType != "" && !slices.Contains(types, s.SourceType) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid source type: %s; those with events are %s", s.SourceType, strings.Join(types, ", "))
	}
	var categories []string
	for _, category := range s.Categories {
		at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, category) })
		if at < 0 {
			return kurabe.Errorf(kurabe.CodeCategoryNotFound, "There is no event category %s of the source type %s", category, s.SourceType)
		}
		if !slices.Contains(categories, known[at]) {
			categories = append(categories, known[at])
		}
	}
	s.Categories = categories
	return nil
}

func (c Subscriptions) checkTopic(arn string) error {
	parts := strings.Split(arn, ":")
	switch {
	case len(parts) != 6 || parts[0] != "arn" || parts[2] != "sns" || parts[5] == "":
		return kurabe.Errorf(kurabe.CodeInvalidTopic, "%s is not the ARN of an SNS topic", arn)
	case parts[3] != c.Region:
		return kurabe.Errorf(kurabe.CodeInvalidTopic, "%s is of another region: events are sent to topics of %s", arn, c.Region)
	case strings.HasSuffix(arn, ".fifo"):
		return kurabe.Errorf(kurabe.CodeInvalidTopic, "events are not sent to FIFO topics: %s", arn)
	}
	if _, ok := c.View.TopicByARN(arn); !ok {
		return kurabe.Errorf(kurabe.CodeTopicNotFound, "The SNS topic %s does not exist", arn)
	}
	return nil
}
