package notify

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/store"
)

const deadline = 60 * time.Second

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// world is a service with topics and no API.
type world struct {
	*testing.T
	kv    *failing
	view  *store.View
	topic kurabe.Topic
	stop  func() // of the Deliverer that runs
	// transport, where it is not nil, is in the place of the network.
	transport http.RoundTripper
}

// failing is a store whose writes can be made to fail.
type failing struct {
	store.KV
	fail atomic.Bool
}

func (f *failing) Txn(ctx context.Context, conds []store.Cond, ops []store.Op) (int64, error) {
	if f.fail.Load() {
		return 0, errors.New("the disk is gone")
	}
	return f.KV.Txn(ctx, conds, ops)
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, kv: &failing{KV: store.NewMemory()}, topic: kurabe.Topic{ID: "t-1", Name: "alerts", ARN: "arn:aws:sns:us-east-1:000000000000:alerts"}}
	w.view = store.NewView(w.kv)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.view.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	w.commit(store.NewChange().PutTopic(w.topic, 0))
	return w
}

func (w *world) commit(c *store.Change) {
	w.Helper()
	revision, err := c.Commit(w.Context(), w.kv)
	if err == nil {
		err = w.view.WaitRevision(w.Context(), revision)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// start has a new server elected, which delivers.
func (w *world) start() {
	w.Helper()
	revision, err := store.NewChange().Put(store.PlannerElectionKey, []byte("h")).Commit(w.Context(), w.kv)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.view.WaitRevision(w.Context(), revision); err != nil {
		w.Fatal(err)
	}
	d := New(Config{
		KV: w.kv, View: w.view, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now, URL: "http://service",
		Guard: AddressGuard{OwnAddresses: func() []netip.Addr { return nil }},
		OpenSigner: func(context.Context) (*Signer, error) {
			return &Signer{testKey(), "https://service/x.pem", time.Now().Add(time.Hour)}, nil
		},
	})
	if w.transport != nil {
		d.client = &http.Client{Transport: w.transport}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx, store.Fence{Key: store.PlannerElectionKey, ModRevision: revision})
	}()
	var once sync.Once
	w.stop = func() { once.Do(func() { cancel(); <-done }) }
	w.Cleanup(w.stop)
}

func (w *world) publish(text string) string {
	w.Helper()
	n := kurabe.Notification{ID: kurabe.NewUUID(), TopicARN: w.topic.ARN, Subject: "about <it>", Message: text, Time: time.Now()}
	c := store.NewChange()
	if !c.Notify(w.view, n) {
		w.Fatal("no room")
	}
	w.commit(c)
	return n.ID
}

// subscriber is an HTTP server that keeps what it is sent.
type subscriber struct {
	*httptest.Server
	answer func(n int, w http.ResponseWriter) // to request n, 0 the first one; nil: 200
	mu     sync.Mutex
	got    []document
	heads  []http.Header
}

func newSubscriber(t *testing.T, answer func(n int, w http.ResponseWriter)) *subscriber {
	s := &subscriber{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d document
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &d); err != nil {
			d.Message = string(body)
		}
		s.mu.Lock()
		n := len(s.got)
		s.got, s.heads = append(s.got, d), append(s.heads, r.Header)
		s.mu.Unlock()
		if s.answer != nil {
			s.answer(n, w)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *subscriber) all() []document {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *subscriber) texts() (list []string) {
	for _, d := range s.all() {
		list = append(list, d.Message)
	}
	return list
}

// subscribe makes a confirmed subscription.
func (w *world) subscribe(id, endpoint string, settings map[string]string) kurabe.Subscription {
	w.Helper()
	s := kurabe.Subscription{ID: kurabe.SubscriptionID(id), Topic: w.topic.ID, Protocol: "http", Endpoint: endpoint, ConfirmedAt: time.Now().Add(-time.Minute), Settings: settings}
	w.commit(store.NewChange().PutSubscription(s, 0))
	return s
}

func (w *world) await(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(deadline); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s: not within %s", what, deadline)
		}
	}
}

func (w *world) emptied() bool {
	count, _ := w.view.QueueSize(w.topic.ID)
	return count == 0
}

// eventOf returns the newest event about topics.
func (w *world) eventOf() (found kurabe.Event) {
	for _, e := range w.view.Events(time.Now().Add(-time.Hour), time.Now().Add(time.Hour)) {
		if e.SourceType == event.Topic {
			found = e
		}
	}
	return found
}

func verify(t *testing.T, d document) {
	t.Helper()
	signature, err := base64.StdEncoding.DecodeString(d.Signature)
	if err != nil {
		t.Fatal(err)
	}
	hash, one, two := crypto.SHA1, sha1.Sum([]byte(d.signed())), sha256.Sum256([]byte(d.signed()))
	sum := one[:]
	if d.SignatureVersion == "2" {
		hash, sum = crypto.SHA256, two[:]
	}
	if err := rsa.VerifyPKCS1v15(&testKey().PublicKey, hash, sum, signature); err != nil {
		t.Errorf("signature of %+v: %v", d, err)
	}
}

// An endpoint is asked first, and sent nothing else before it has agreed; then what is published
// from then on.
func TestHandshake(t *testing.T) {
	w := newWorld(t)
	s := newSubscriber(t, nil)
	sub := kurabe.Subscription{ID: "s-1", Topic: w.topic.ID, Protocol: "http", Endpoint: s.URL + "/in", Token: "secret", TokenUntil: time.Now().Add(TokenLifetime)}
	other := newSubscriber(t, nil)
	w.subscribe("s-2", other.URL, nil) // so that there is a queue
	w.commit(store.NewChange().PutSubscription(sub, 0))
	w.start()
	w.publish("too early")
	w.await("the question", func() bool { return len(s.all()) == 1 && len(other.all()) == 1 })
	first := s.all()[0]
	want := "http://service/?Action=ConfirmSubscription&Token=secret&TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A000000000000%3Aalerts"
	if first.Type != typeConfirmation || first.Token != "secret" || first.SubscribeURL != want || first.UnsubscribeURL != "" {
		t.Errorf("asked with %+v", first)
	}
	verify(t, first)
	if h := s.heads[0]; h.Get("x-amz-sns-message-type") != typeConfirmation || h.Get("x-amz-sns-topic-arn") != w.topic.ARN || h.Get("Content-Type") != "text/plain; charset=UTF-8" {
		t.Errorf("headers %v", h)
	}
	r, _ := w.view.Subscription(w.topic.ID, "s-1")
	sub.ConfirmedAt = time.Now()
	w.commit(store.NewChange().PutSubscription(sub, r.ModRevision))
	id := w.publish("a < b")
	w.await("the notification", func() bool { return len(s.all()) == 2 })
	second := s.all()[1]
	if second.MessageID != id || second.Message != "a < b" || second.Subject != "about <it>" || second.TopicARN != w.topic.ARN || !strings.Contains(second.UnsubscribeURL, "Action=Unsubscribe&SubscriptionArn=") {
		t.Errorf("sent %+v", second)
	}
	verify(t, second)
	if h := s.heads[1]; h.Get("x-amz-sns-message-id") != id || h.Get("x-amz-sns-subscription-arn") != w.topic.ARN+":s-1" {
		t.Errorf("headers %v", h)
	}
	w.await("the queue to be empty", w.emptied)
	if len(s.all()) != 2 {
		t.Errorf("sent %+v", s.texts())
	}
	// When a link has ended it, it is told so, and can take that back.
	r, _ = w.view.Subscription(w.topic.ID, "s-1")
	sub.ConfirmedAt, sub.EndedAt, sub.Token = time.Time{}, time.Now(), "other"
	w.commit(store.NewChange().PutSubscription(sub, r.ModRevision))
	w.publish("too late")
	w.await("the last word", func() bool { return len(s.all()) == 3 && len(other.all()) == 3 })
	if third := s.all()[2]; third.Type != typeEnded || third.Token != "other" || !strings.Contains(third.SubscribeURL, "Action=ConfirmSubscription&Token=other") {
		t.Errorf("sent %+v", third)
	} else {
		verify(t, third)
	}
}

func TestFormsOfDelivery(t *testing.T) {
	w := newWorld(t)
	raw, chat, body, some := newSubscriber(t, nil), newSubscriber(t, nil), newSubscriber(t, nil), newSubscriber(t, nil)
	w.subscribe("raw", raw.URL, map[string]string{"RawMessageDelivery": "true", "DeliveryPolicy": `{"requestPolicy":{"headerContentType":"application/json"}}`})
	w.subscribe("chat", chat.URL+"/hook#slack", nil)
	w.subscribe("body", body.URL, map[string]string{"FilterPolicy": `{"n":[{"numeric":[">",1]}]}`, "FilterPolicyScope": "MessageBody"})
	w.subscribe("some", some.URL, map[string]string{"FilterPolicy": `{"kind":["x"]}`})
	topic, _ := w.view.Topic("alerts")
	topic.Value.Settings = map[string]string{"SignatureVersion": "2"}
	w.commit(store.NewChange().PutTopic(topic.Value, topic.ModRevision))
	w.start()
	w.publish(`{"n":1}`)
	w.publish(`{"n":2}`)
	w.await("the queue to be empty", w.emptied)
	if h := raw.heads[0]; h.Get("x-amz-sns-rawdelivery") != "true" || h.Get("Content-Type") != "application/json" || raw.all()[0].Message != "" && raw.all()[0].Type != "" {
		t.Errorf("raw: %v, %+v", h, raw.all()[0])
	}
	if got := chat.heads[0].Get("Content-Type"); got != "application/json" || len(chat.all()) != 2 {
		t.Errorf("chat: %s, %+v", got, chat.all())
	}
	if got := body.texts(); !slices.Equal(got, []string{`{"n":2}`}) || body.all()[0].SignatureVersion != "2" {
		t.Errorf("filtered: %q", got)
	}
	verify(t, body.all()[0])
	if got := some.texts(); len(got) != 0 {
		t.Errorf("filtered: %q", got)
	}
}

// Each subscription gets everything in order, whatever another one does; an attempt that fails is
// repeated with the same id before anything else is sent.
func TestOneThatHangsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	hang := make(chan struct{})
	defer close(hang)
	hung := newSubscriber(t, func(int, http.ResponseWriter) { <-hang })
	bad := newSubscriber(t, func(n int, w http.ResponseWriter) {
		if n == 1 || n == 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	good := newSubscriber(t, nil)
	for name, s := range map[string]*subscriber{"hung": hung, "bad": bad, "good": good} {
		w.subscribe(name, s.URL, nil)
	}
	w.start()
	const count = 50
	var want []string
	for n := range count {
		want = append(want, fmt.Sprint(n))
		w.publish(want[n])
	}
	w.await("all to be delivered", func() bool { return len(good.all()) >= count && len(bad.all()) >= count+2 })
	if got := good.texts(); !slices.Equal(got, want) {
		t.Errorf("delivered %q", got)
	}
	got := bad.all()
	if got[1].MessageID != got[2].MessageID || got[1].MessageID != got[3].MessageID {
		t.Errorf("a repetition has another id: %+v", got[:4])
	}
	if got := slices.Compact(bad.texts()); !slices.Equal(got, want) {
		t.Errorf("delivered %q", got)
	}
	if len(hung.all()) != 1 {
		t.Errorf("the one that hangs was sent %d", len(hung.all()))
	}
}

// A redirect leads nowhere; what is refused for good is given up with an event.
func TestRedirectIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	elsewhere := newSubscriber(t, nil)
	s := newSubscriber(t, func(_ int, rw http.ResponseWriter) {
		rw.Header().Set("Location", elsewhere.URL)
		rw.WriteHeader(http.StatusTemporaryRedirect)
	})
	w.subscribe("s-1", s.URL+"/path?secret=1", nil)
	w.start()
	w.publish("x")
	w.publish("y")
	w.await("the queue to be empty", w.emptied)
	if got := s.texts(); !slices.Equal(got, []string{"x", "y"}) || len(elsewhere.all()) != 0 {
		t.Errorf("sent %q, and %d elsewhere", got, len(elsewhere.all()))
	}
	w.await("the event", func() bool { return w.eventOf().ID != "" })
	if e := w.eventOf(); !strings.Contains(e.Message, "redirects are not followed") || strings.Contains(e.Message, "secret") || e.Source != "alerts" {
		t.Errorf("event %+v", e)
	}
	sub, _ := w.view.Subscription(w.topic.ID, "s-1")
	if c := w.view.DeliveryCursor(sub.Value); c.GivenUp != 2 {
		t.Errorf("cursor %+v", c)
	}
}

// A server that dies between a delivery and its record: the next one delivers again, with the
// same id, and loses nothing.
func TestCrashRepeatsAndLosesNothing(t *testing.T) {
	w := newWorld(t)
	s := newSubscriber(t, nil)
	w.subscribe("s-1", s.URL, nil)
	first := w.publish("a")
	w.start()
	w.await("a delivery and its record", w.emptied)
	w.kv.fail.Store(true)
	second := kurabe.NewUUID()
	n := kurabe.Notification{ID: second, TopicARN: w.topic.ARN, Message: "b", Time: time.Now()}
	c := store.NewChange()
	c.Notify(w.view, n)
	if _, err := c.Commit(t.Context(), w.kv.KV); err != nil { // another server's write, which does not fail
		t.Fatal(err)
	}
	w.await("a delivery without a record", func() bool { return len(s.all()) == 2 })
	w.stop()
	w.kv.fail.Store(false)
	w.start()
	w.publish("c")
	w.await("the rest", func() bool { return len(s.all()) == 4 })
	var ids []string
	for _, d := range s.all() {
		ids = append(ids, d.MessageID)
	}
	if ids[0] != first || ids[1] != second || ids[2] != second || !slices.Equal(s.texts(), []string{"a", "b", "b", "c"}) {
		t.Errorf("delivered %q: %q", s.texts(), ids)
	}
	w.await("the queue to be empty", w.emptied)
}

// A deposed server writes nothing.
func TestDeposedServerWritesNothing(t *testing.T) {
	w := newWorld(t)
	s := newSubscriber(t, nil)
	sub := w.subscribe("s-1", s.URL, nil)
	w.start()
	if _, err := store.NewChange().Put(store.PlannerElectionKey, []byte("other")).Commit(t.Context(), w.kv); err != nil {
		t.Fatal(err)
	}
	w.publish("x")
	w.await("a delivery", func() bool { return len(s.all()) == 1 })
	w.stop()
	if c := w.view.DeliveryCursor(sub); c.Key != "" || w.emptied() {
		t.Errorf("it wrote %+v", c)
	}
}

// Attempts that failed are known to the next server, and so is when the next one is due.
func TestRetriesOutliveAServer(t *testing.T) {
	w := newWorld(t)
	s := newSubscriber(t, func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) })
	sub := w.subscribe("s-1", s.URL, map[string]string{"DeliveryPolicy": `{"healthyRetryPolicy":{"numRetries":3,"numNoDelayRetries":1,"numMinDelayRetries":0,"numMaxDelayRetries":2,"minDelayTarget":3600,"maxDelayTarget":3600}}`})
	w.start()
	w.publish("x")
	saved := func() bool { return w.view.DeliveryCursor(sub).Attempts == 2 }
	w.await("the record of two attempts", saved)
	w.stop()
	before := w.view.DeliveryCursor(sub)
	w.start()
	w.publish("y")
	w.await("the new server to look", func() bool { q, _ := w.view.QueueSize(w.topic.ID); return q == 2 })
	w.stop()
	if after := w.view.DeliveryCursor(sub); len(s.all()) != 2 || after.Attempts != 2 || !after.RetryAt.Equal(before.RetryAt) {
		t.Errorf("%d attempts; %+v, then %+v", len(s.all()), before, after)
	}
}

// A subscriber that fails does not fill the queue for the others for long.
func TestCrowdedQueueGivesUpForWhoFails(t *testing.T) {
	w := newWorld(t)
	bad := newSubscriber(t, func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) })
	good := newSubscriber(t, nil)
	w.subscribe("bad", bad.URL, map[string]string{"DeliveryPolicy": `{"healthyRetryPolicy":{"numRetries":9,"numNoDelayRetries":0,"numMinDelayRetries":0,"numMaxDelayRetries":9,"minDelayTarget":3600,"maxDelayTarget":3600}}`})
	w.subscribe("good", good.URL, nil)
	w.start()
	noise := make([]byte, 100<<10)
	rand.Read(noise)
	text, count := hex.EncodeToString(noise), 0
	for ; count < 600; count++ { // twice the queue
		n := kurabe.Notification{TopicARN: w.topic.ARN, Message: text, Time: time.Now()}
		var c *store.Change
		w.await("room", func() bool { c = store.NewChange(); return c.Notify(w.view, n) })
		w.commit(c)
	}
	w.await("all deliveries", func() bool { return len(good.all()) == count })
	w.await("the event", func() bool { return w.eventOf().ID != "" })
	if e := w.eventOf(); !strings.Contains(e.Message, "filling up") {
		t.Errorf("event %+v", e)
	}
}

// Ten thousand in a burst: all arrive, in order, each once, and memory is that of the queue.
func TestBurst(t *testing.T) {
	w := newWorld(t)
	count := 10_000
	if testing.Short() {
		count = 500
	}
	s := newSubscriber(t, nil)
	w.subscribe("s-1", s.URL, nil)
	w.start()
	for n := range count {
		c := store.NewChange().NotifyOrCount(w.view, kurabe.Notification{TopicARN: w.topic.ARN, Message: fmt.Sprint(n), Time: time.Now()})
		if _, err := c.Commit(t.Context(), w.kv); err != nil {
			t.Fatal(err)
		}
	}
	w.await("all deliveries", func() bool { return len(s.all()) >= count })
	for n, d := range s.all() {
		if d.Message != fmt.Sprint(n) {
			t.Fatalf("delivery %d is %s", n, d.Message)
		}
	}
	w.await("the queue to be empty", w.emptied)
	if lost := w.view.TakeGivenUp(); len(lost) != 0 || len(s.all()) != count {
		t.Errorf("given up %v, delivered %d", lost, len(s.all()))
	}
}
