package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// answerTimeout is SNS's: a subscriber has fifteen seconds.
	answerTimeout = 15 * time.Second
	// answerBytesMax is how much of an answer is read, so that the connection can be used again.
	answerBytesMax = 64 << 10
	idleTimeout    = 30 * time.Second
	userAgent      = "Kurabe Notification Service Agent"
)

// failure is why a delivery did not succeed. Its text is for users; it names no path and no
// credentials.
type failure struct {
	reason    string
	permanent bool          // trying again is of no use
	after     time.Duration // not to be tried before
}

func (f *failure) Error() string { return f.reason }

// newHTTPClient makes a client that follows no redirect, asks no proxy, and connects to allowed
// addresses only.
func newHTTPClient(guard AddressGuard) *http.Client {
	return &http.Client{
		Timeout:       answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: guard.dial, MaxIdleConnsPerHost: 1, MaxIdleConns: 256, IdleConnTimeout: idleTimeout, TLSHandshakeTimeout: dialTimeout,
			MaxResponseHeaderBytes: answerBytesMax, ForceAttemptHTTP2: true,
		},
	}
}

// ChatFragment at the end of a URL says that a chat's webhook takes the messages there: as
// {"text": …}, which Slack began with and Mattermost, Rocket.Chat, Discord (below /slack) and
// others take. A fragment is never sent, so no other webhook can need it.
const ChatFragment = "slack"

// IsChat says whether an endpoint is a chat's webhook.
func IsChat(endpoint string) bool { return strings.HasSuffix(endpoint, "#"+ChatFragment) }

// chatBytesMax is what a message in a chat may have; Slack cuts at 40,000 characters.
const chatBytesMax = 30_000

var chatEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// chatText is a message for people in a chat.
func chatText(m message) string {
	switch m.Type {
	case typeConfirmation:
		return "Kurabe asks whether this channel is to get the notifications of the topic " + m.TopicARN + ". To agree, open <" + m.SubscribeURL + ">."
	case typeEnded:
		return "This channel gets no more notifications of the topic " + m.TopicARN + ". To get them again, open <" + m.SubscribeURL + ">."
	}
	text := m.Message
	if len(text) > chatBytesMax {
		text = strings.ToValidUTF8(text[:chatBytesMax], "") + " …"
	}
	text = chatEscape.Replace(text)
	if m.Subject != "" {
		text = "*" + chatEscape.Replace(m.Subject) + "*\n" + text
	}
	return text
}

// httpRequest makes the request of a message; it is signed already.
func httpRequest(ctx context.Context, m message) (*http.Request, error) {
	kind, body := "text/plain; charset=UTF-8", []byte(nil)
	if m.policy.Request != nil && m.policy.Request.HeaderContentType != "" {
		kind = m.policy.Request.HeaderContentType
	}
	raw := m.raw && m.Type == typeNotification
	switch {
	case IsChat(m.subscription.Endpoint):
		kind, body = "application/json", marshal(map[string]string{"text": chatText(m)})
	case raw:
		body = []byte(m.Message)
	default:
		body = marshal(m.document)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.subscription.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, &failure{reason: "the endpoint is no URL", permanent: true}
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("User-Agent", userAgent)
	if IsChat(m.subscription.Endpoint) {
		return r, nil
	}
	// In SNS's own spelling: some subscribers look for nothing else.
	r.Header["x-amz-sns-message-type"] = []string{m.Type}
	r.Header["x-amz-sns-message-id"] = []string{m.MessageID}
	r.Header["x-amz-sns-topic-arn"] = []string{m.TopicARN}
	if m.Type == typeNotification {
		r.Header["x-amz-sns-subscription-arn"] = []string{m.subscription.ARN(m.topic)}
	}
	if raw {
		r.Header["x-amz-sns-rawdelivery"] = []string{"true"}
	}
	return r, nil
}

// post sends a message to an HTTP subscriber.
func post(ctx context.Context, client *http.Client, m message) error {
	r, err := httpRequest(ctx, m)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return httpFailure(err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, answerBytesMax)
	return statusFailure(answer)
}

// httpFailure leaves the URL out of an error: it can hold a password, or be one.
func httpFailure(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if wrapped.Timeout() {
			return &failure{reason: fmt.Sprintf("no answer came within %s", answerTimeout)}
		}
		err = wrapped.Err
	}
	return &failure{reason: err.Error(), permanent: errors.Is(err, ErrAddress)}
}

// statusFailure judges an answer as SNS does: it tries again after 5xx and 429 only.
func statusFailure(answer *http.Response) error {
	code := answer.StatusCode
	switch {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return &failure{reason: fmt.Sprintf("the subscriber answered %d: redirects are not followed", code), permanent: true}
	case code < 500 && code != http.StatusTooManyRequests:
		return &failure{reason: fmt.Sprintf("the subscriber answered %d", code), permanent: true}
	}
	f := &failure{reason: fmt.Sprintf("the subscriber answered %d", code)}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		f.after = time.Duration(min(seconds, delayTargetMax)) * time.Second
	}
	return f
}
