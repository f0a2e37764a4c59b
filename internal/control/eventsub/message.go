package eventsub

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

const subject = "RDS Notification Message"

// eventDocument begins the page that RDS names in the field Event ID, up to the id.
const eventDocument = "http://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_Events.Messages.html#"

// consolePlaces are the parts of AWS's console for each source type, as RDS names them.
var consolePlaces = map[string]string{
	event.Instance: "dbinstance", event.Cluster: "dbcluster", event.Snapshot: "snapshot", event.ClusterSnapshot: "dbclustersnapshot",
	event.ParameterGroup: "parameter-group",
}

// document is the text that RDS sends of an event. The names are RDS's.
type document struct {
	Source  string            `json:"Event Source"`
	Time    string            `json:"Event Time"`
	Link    string            `json:"Identifier Link"`
	ID      string            `json:"Source ID"`
	ARN     string            `json:"Source ARN"`
	Event   string            `json:"Event ID"`
	Message string            `json:"Event Message"`
	Tags    map[string]string `json:"Tags"`
}

// notification is an event as RDS sends it to a topic, with the tags that its source has now.
func (d *Dispatcher) notification(e kurabe.Event, topicARN string, now time.Time) kurabe.Notification {
	arn, tags := d.Source(e)
	doc := document{
		Source: e.SourceType, Time: e.At.UTC().Format("2006-01-02 15:04:05.000"), ID: e.Source, ARN: arn, Event: eventDocument + e.ID, Message: e.Message,
		Link: "https://console.aws.amazon.com/rds/home?region=" + d.Region + "#" + consolePlaces[e.SourceType] + ":id=" + url.PathEscape(e.Source),
		Tags: map[string]string{},
	}
	for _, t := range tags {
		doc.Tags[t.Key] = t.Value
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(doc) // strings alone
	return kurabe.Notification{
		TopicARN: topicARN, Subject: subject, Message: strings.TrimSpace(text.String()), Time: now,
		Attributes: map[string]kurabe.MessageAttribute{"Resource": {Type: "String", Text: arn}, "EventID": {Type: "String", Text: e.ID}},
	}
}
