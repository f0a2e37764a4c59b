package control

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/control/secret"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// managed is an instance whose password the service keeps, and its database: the verifier that it
// checks passwords with.
type managed struct {
	*Control
	t        *testing.T
	name     string
	now      time.Time
	fence    store.Fence
	database string
}

func newManaged(t *testing.T, n NewInstance) *managed {
	t.Helper()
	m := &managed{t: t, name: n.Name, now: scopetest.Now}
	c := newTestWorld(t)
	c.Now = func() time.Time { return m.now }
	c.Secrets.Now = c.Now
	m.Control = New(c.Scope, c.Config)
	if n.Class == "db.cluster" {
		n.Class = "db.local.micro"
		m.Control = m.Clusters()
	}
	revision, err := store.NewChange().Put(store.PlannerElectionKey, []byte("h1")).Commit(t.Context(), c.KV)
	if err != nil {
		t.Fatal(err)
	}
	m.fence = store.Fence{Key: store.PlannerElectionKey, ModRevision: revision}
	if n.Name == "" {
		return m
	}
	if _, err := m.CreateInstance(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *managed) instance() Instance {
	m.t.Helper()
	i, err := m.Instance(m.name)
	if err != nil {
		m.t.Fatal(err)
	}
	return i
}

// apply has the database take the password of the spec; told says that the status tells of it.
func (m *managed) apply(told bool) {
	m.t.Helper()
	i := m.instance()
	m.database = i.Spec.Password.Verifier
	if !told {
		return
	}
	stored, _ := m.View.Instance(i.Spec.ID)
	status := kurabe.InstanceStatus{ID: i.Spec.ID}
	if stored.Status != nil {
		status = *stored.Status
	}
	status.State, status.AvailableAt, status.PasswordSeq, status.SpecRevision, status.Applied = kurabe.StateAvailable, m.now, i.Spec.Password.Seq, i.Spec.Revision, i.Spec.Now
	scopetest.Commit(m.t, m.Scope, store.NewChange().PutStatus(status, stored.StatusMod))
}

func (m *managed) keep() {
	m.t.Helper()
	if err := m.keepSecrets(m.t.Context(), m.fence); err != nil {
		m.t.Error(err)
	}
}

// password is the password of a stage, "" for none.
func (m *managed) password(stage string) string {
	m.t.Helper()
	i := m.instance()
	if i.MasterSecret == nil {
		return ""
	}
	o, err := m.Secrets.Reveal(m.t.Context(), i.MasterSecret.ARN, "", stage)
	if err != nil {
		return ""
	}
	var login struct{ Username, Password string }
	if err := json.Unmarshal([]byte(o.Value.Secret.Reveal()), &login); err != nil || login.Username != i.Spec.MasterUsername {
		m.t.Errorf("%s: %+v, %v", stage, login.Username, err)
	}
	return login.Password
}

// want checks the status of the secret, and that one of its two logins opens the database.
func (m *managed) want(status string) {
	m.t.Helper()
	s := m.instance().MasterSecret
	if s == nil || s.MasterSecretStatus(m.now) != status {
		m.t.Fatalf("secret %+v, want it %s", s, status)
	}
	current, pending := "verifier of "+m.password(kurabe.StageCurrent), "verifier of "+m.password(kurabe.StagePending)
	if m.database != "" && m.database != current && m.database != pending {
		m.t.Errorf("%s: neither login opens the database", status)
	}
}

var on, off = true, false

func managedRequest(name string) NewInstance {
	n := newRequest(name, "postgres", "db.local.micro")
	n.MasterPassword, n.MultiAZ, n.Managed.On = "", false, &on
	return n
}

func TestManagedPasswordAlwaysOpensTheDatabase(t *testing.T) {
	m := newManaged(t, managedRequest("orders"))
	m.want("creating")
	m.apply(false)
	m.keep()
	m.want("creating")
	m.apply(true)
	m.keep()
	m.want("active")
	first := m.password(kurabe.StageCurrent)
	if len(first) != 32 || kurabe.CheckMasterPassword(kurabe.MariaDB, first) != nil {
		t.Errorf("the password %q", first)
	}
	rotate := InstanceChange{ApplyImmediately: true, Managed: ManagedPassword{Rotate: true}}
	if _, err := m.ModifyInstance(t.Context(), "orders", rotate); err != nil {
		t.Fatal(err)
	}
	m.want("rotating")
	if m.password(kurabe.StageCurrent) != first || m.password(kurabe.StagePending) == first {
		t.Error("the stages moved before the database has the new password")
	}
	m.keep()
	m.want("rotating")
	_, err := m.ModifyInstance(t.Context(), "orders", rotate)
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "")
	m.apply(false) // the host has died before it told of it
	m.keep()
	m.want("rotating")
	m.apply(true)
	m.want("rotating") // we have died before the stages moved
	m.keep()
	m.want("active")
	m.keep() // what runs twice does nothing
	if m.password(kurabe.StagePrevious) != first || m.password(kurabe.StagePending) != "" {
		t.Error("the first login is not the previous one")
	}
	for range 3 { // by the clock
		m.now = m.now.Add(7*24*time.Hour + time.Second)
		m.keep()
		m.want("rotating")
		m.apply(true)
		m.keep()
		m.want("active")
	}
	values, _, err := m.KV.List(t.Context(), store.Root+"secret-value/")
	if err != nil || len(values) != 2 {
		t.Errorf("%d values are kept, %v", len(values), err)
	}
	m.now = m.now.Add(7*24*time.Hour + time.Second)
	i := m.instance()
	stored, _ := m.View.Instance(i.Spec.ID)
	status := *stored.Status
	status.State = kurabe.StateStopped
	scopetest.Commit(t, m.Scope, store.NewChange().PutStatus(status, stored.StatusMod))
	m.keep()
	m.want("active") // a stopped one is rotated when it runs again
	m.now = m.now.Add(25 * time.Hour)
	m.want("impaired")
}

// A server that knows no secrets gives the instance another password: the secret gets one that the
// database has, too.
func TestPasswordBesideTheSecret(t *testing.T) {
	m := newManaged(t, managedRequest("orders"))
	m.apply(true)
	m.keep()
	stored, _ := m.View.Instance(m.instance().Spec.ID)
	spec := *stored.Spec
	spec.Password = kurabe.Password{Seq: spec.Password.Seq + 1, Verifier: "another"}
	spec.Revision++
	scopetest.Commit(t, m.Scope, store.NewChange().PutInstance(spec, stored.SpecMod))
	m.apply(true)
	m.keep()
	m.apply(true)
	m.keep()
	m.want("active")
}

func TestManagementBeginsAndEnds(t *testing.T) {
	request := managedRequest("orders")
	request.Managed.On, request.MasterPassword = nil, "secret-of-a-user"
	m := newManaged(t, request)
	m.apply(true)
	theirs := logkey.Secret("another-of-a-user")
	key := "arn:aws:kms:us-east-1:000000000000:key/1"
	modify := func(change InstanceChange) error {
		change.ApplyImmediately = true
		_, err := m.ModifyInstance(t.Context(), "orders", change)
		return err
	}
	scopetest.WantCode(t, modify(InstanceChange{Managed: ManagedPassword{Rotate: true}}), kurabe.CodeInvalidParameterCombo, "isn't managed")
	scopetest.WantCode(t, modify(InstanceChange{Managed: ManagedPassword{On: &on}, MasterPassword: &theirs}), kurabe.CodeInvalidParameterCombo, "can't specify MasterUserPassword")
	scopetest.WantCode(t, modify(InstanceChange{Managed: ManagedPassword{On: &on, Key: &key}}), kurabe.CodeInvalidParameterValue, "KMS is not offered")
	if err := modify(InstanceChange{Managed: ManagedPassword{On: &on}}); err != nil {
		t.Fatal(err)
	}
	if s := m.instance().MasterSecret; s == nil || s.MasterSecretStatus(m.now) != "creating" || !strings.HasPrefix(s.Name, "rds!db-") {
		t.Fatalf("%+v", s)
	}
	m.apply(true)
	m.keep()
	m.want("active")
	arn := m.instance().MasterSecret.ARN
	_, err := m.Secrets.Delete(t.Context(), arn, nil, true)
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "managed by another service")
	scopetest.WantCode(t, m.Secrets.Tag(t.Context(), arn, []kurabe.Tag{{Key: "k"}}), kurabe.CodeInvalidInstanceState, "managed by another service")
	scopetest.WantCode(t, modify(InstanceChange{MasterPassword: &theirs}), kurabe.CodeInvalidParameterCombo, "can't modify MasterUserPassword")
	scopetest.WantCode(t, modify(InstanceChange{Managed: ManagedPassword{On: &off}}), kurabe.CodeInvalidParameterCombo, "must specify MasterUserPassword")
	scopetest.WantCode(t, modify(InstanceChange{Managed: ManagedPassword{On: &on}}), "", "")
	if err := modify(InstanceChange{Managed: ManagedPassword{On: &off}, MasterPassword: &theirs}); err != nil {
		t.Fatal(err)
	}
	if i := m.instance(); i.MasterSecret != nil || i.Spec.Password.Verifier != "verifier of "+theirs.Reveal() {
		t.Errorf("%+v", i.MasterSecret)
	}
	if left, _, err := m.KV.List(t.Context(), store.Root+"secret"); err != nil || len(left) != 0 {
		t.Errorf("%d records are left, %v", len(left), err)
	}
}

func TestSecretGoesWithItsDatabase(t *testing.T) {
	request := managedRequest("shop")
	request.Class, request.MultiAZ = "db.cluster", true
	m := newManaged(t, request)
	s := m.instance().MasterSecret
	if !strings.HasPrefix(s.Name, "rds!cluster-") {
		t.Errorf("it is called %s", s.Name)
	}
	tags := m.Secrets.Tags(*s)
	if len(tags) != 2 || tags[1] != (kurabe.Tag{Key: "aws:rds:primaryDBClusterArn", Value: "arn:aws:rds:us-east-1:000000000000:cluster:shop"}) {
		t.Errorf("tags %v", tags)
	}
	m.keep()
	stored, _ := m.View.Instance(m.instance().Spec.ID)
	scopetest.Commit(t, m.Scope, store.NewChange().DeleteInstance(stored))
	m.keep()
	if left, _, err := m.KV.List(t.Context(), store.Root+"secret"); err != nil || len(left) != 0 {
		t.Errorf("%d records are left, %v", len(left), err)
	}
}

// A secret follows its password when a read replica takes the place of its instance.
func TestSecretFollowsASwitchover(t *testing.T) {
	m := newManaged(t, managedRequest("orders"))
	m.apply(true)
	m.keep()
	old := m.instance()
	heir := *old.Spec
	heir.ID, heir.Name, heir.Revision = kurabe.NewInstanceID(), "heir", 1
	heir.Password = old.Spec.Password.From(old.Spec.ID)
	stored, _ := m.View.Instance(old.Spec.ID)
	status := *stored.Status
	status.Source = heir.ID
	scopetest.Commit(t, m.Scope, store.NewChange().CreateInstance(heir).PutStatus(status, stored.StatusMod))
	m.keep()
	m.name = "heir"
	m.apply(true)
	m.keep()
	m.want("active")
	if m.instance().MasterSecret.ARN != old.MasterSecret.ARN {
		t.Error("it is another secret")
	}
}

func TestSecretsThatAreDueAreRemoved(t *testing.T) {
	m := newManaged(t, NewInstance{})
	made, _, err := m.Secrets.Create(t.Context(), secretRequest("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Secrets.Delete(t.Context(), made.ARN, nil, false); err != nil {
		t.Fatal(err)
	}
	for days, there := range []bool{true, false} {
		m.now = scopetest.Now.AddDate(0, 0, 29+2*days)
		m.keep()
		if _, err := m.Secrets.Find("a"); (err == nil) != there {
			t.Errorf("after %v: %v", m.now.Sub(scopetest.Now), err)
		}
	}
}

// What a change says of passwords is nothing.
func TestManagedPasswordIsSaidNowhere(t *testing.T) {
	m := newManaged(t, managedRequest("orders"))
	password := m.password(kurabe.StageCurrent)
	all, _, err := m.KV.List(t.Context(), store.Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if strings.Contains(string(e.Value), password) && !strings.Contains(e.Key, "spec/instance/") { // whose verifier is the password, in this test
			t.Errorf("the store has it in %s", e.Key)
		}
	}
}

func secretRequest(name string) secret.New {
	return secret.New{Name: name, Value: &secret.Value{Secret: "of a user"}}
}
