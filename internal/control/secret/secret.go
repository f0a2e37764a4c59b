package secret

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// Secrets is the use cases.
type Secrets struct {
	scope.Scope
	Sealer Sealer
}

// Bounds. Those of a secret are Secrets Manager's; those of all secrets are ours, since the state
// store is in every server's memory, but for the values, and has 1 GiB.
const (
	secretsMax     = 5000
	valuesBytesMax = 64 << 20
	valueBytesMax  = 64 << 10
	descriptionMax = 2048
	tagsMax        = 50
	stagesMax      = 20
	stageBytesMax  = 256
	recordBytesMax = store.RecordBytesMax - 4<<10
	defaultWindow  = 30
	minWindow      = 7
	maxWindow      = 30
	tokenMin       = 32
	tokenMax       = 64
	managedPrefix  = "rds!"
)

// DefaultKey is the only key that secrets are sealed with, by the name that AWS gives its own.
const DefaultKey = "alias/aws/secretsmanager"

var secretName = regexp.MustCompile(`^[A-Za-z0-9/_+=.@!-]{1,512}$`)

// Messages of Secrets Manager.
const (
	wordsNotFound = "Secrets Manager can't find the specified secret."
	wordsDeleted  = "You can't perform this operation on the secret because it was marked for deletion."
	wordsManaged  = "The secret is managed by another service, and you must use that service to update it: %s belongs to RDS; rotate it by ModifyDBInstance or ModifyDBCluster with RotateMasterUserPassword, and give it up with ManageMasterUserPassword=false and a MasterUserPassword"
	wordsNoValue  = "Secrets Manager can't find the specified secret value for %s: %s"
	wordsTokenHas = "You can't use ClientRequestToken %s because that value is already in use for a version of secret %s."
)

func invalid(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
}

// badRequest is an error of the state that a secret is in.
func badRequest(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidInstanceState, format, args...)
}

func exists(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInstanceExists, format, args...)
}

func tooMany(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInstanceQuota, format, args...)
}

// Find returns a secret by its name, its ARN, or its ARN without the six characters at its end.
func (s Secrets) Find(id string) (r store.Record[kurabe.Secret], err error) {
	found := false
	if strings.HasPrefix(id, "arn:") {
		r, found = s.View.SecretByARN(id)
	} else {
		r, found = s.View.Secret(id)
	}
	if !found {
		return r, kurabe.Errorf(kurabe.CodeResourceNotFound, wordsNotFound)
	}
	return r, nil
}

// live is Find for what a secret that is to be deleted does not allow.
func (s Secrets) live(id string) (store.Record[kurabe.Secret], error) {
	r, err := s.Find(id)
	if err == nil && !r.Value.DeletedAt.IsZero() {
		err = badRequest(wordsDeleted)
	}
	return r, err
}

// own is live for what users may not do to a secret of a database.
func (s Secrets) own(id string) (store.Record[kurabe.Secret], error) {
	r, err := s.live(id)
	if err == nil && r.Value.Master != nil {
		err = badRequest(wordsManaged, r.Value.Name)
	}
	return r, err
}

// put writes a secret, whose record has to fit.
func put(change *store.Change, secret kurabe.Secret, mod int64) (*store.Change, error) {
	text, err := json.Marshal(secret)
	if err != nil {
		return nil, err
	}
	if len(text) > recordBytesMax {
		return nil, tooMany("The description, tags and staging labels of the secret have more than %d bytes together.", recordBytesMax)
	}
	return change.PutSecret(secret, mod), nil
}

// change writes a secret of a user after an edit.
func (s Secrets) change(ctx context.Context, id string, edit func(*kurabe.Secret) error) (secret kurabe.Secret, err error) {
	return secret, s.Update(ctx, func() (*store.Change, error) {
		r, err := s.own(id)
		if err != nil {
			return nil, err
		}
		if err := edit(&r.Value); err != nil {
			return nil, err
		}
		r.Value.ChangedAt = s.Now()
		secret = r.Value
		return put(store.NewChange(), r.Value, r.ModRevision)
	})
}

// New is a request to create a secret. Value is nil for one without a version yet.
type New struct {
	Name, Description, Token string
	KMSKey                   *string
	Tags                     []kurabe.Tag
	Value                    *Value
}

// Create makes a secret, or returns the one that the same request has made.
func (s Secrets) Create(ctx context.Context, n New) (secret kurabe.Secret, version kurabe.SecretVersionID, err error) {
	switch {
	case !secretName.MatchString(n.Name):
		return secret, "", kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!")
	case strings.HasPrefix(n.Name, managedPrefix):
		return secret, "", invalid("Names that begin with %s are of secrets that RDS manages.", managedPrefix)
	}
	if err := check(n.Description, n.KMSKey, n.Tags); err != nil {
		return secret, "", err
	}
	return secret, version, s.Scope.Create(ctx, func() (*store.Change, error) {
		if old, there := s.View.Secret(n.Name); there {
			secret, version, err = s.again(ctx, old.Value, n)
			return nil, err
		}
		if count, _ := s.View.SecretBytes(); count >= secretsMax {
			return nil, tooMany("There are %d secrets already, which is the limit.", secretsMax)
		}
		change := store.NewChange()
		secret = s.fresh(n.Name, n.Description, n.Tags)
		if n.KMSKey != nil {
			secret.KMSKey = *n.KMSKey
		}
		if n.Value != nil {
			if secret, version, err = s.addVersion(ctx, change, secret, n.Token, *n.Value, []string{kurabe.StageCurrent}); err != nil {
				return nil, err
			}
		}
		return put(change, secret, 0)
	})
}

// fresh is a secret without versions.
func (s Secrets) fresh(name, description string, tags []kurabe.Tag) kurabe.Secret {
	now := s.Now()
	return kurabe.Secret{
		ID: kurabe.SecretID(kurabe.NewUUID()), Name: name, Description: description, Tags: tags, CreatedAt: now, ChangedAt: now,
		ARN: "arn:aws:secretsmanager:" + s.Region + ":" + s.Account + ":secret:" + name + "-" + randomText(letters+digits, 6),
	}
}

// again is the answer to a request for a secret that is there.
func (s Secrets) again(ctx context.Context, old kurabe.Secret, n New) (kurabe.Secret, kurabe.SecretVersionID, error) {
	if !old.DeletedAt.IsZero() {
		return old, "", badRequest("You can't create this secret because a secret with this name is already scheduled for deletion.")
	}
	if v, has := old.Version(kurabe.SecretVersionID(n.Token)); has && n.Token != "" && n.Value != nil {
		return old, v.ID, s.same(ctx, old, v.ID, *n.Value)
	}
	return old, "", exists("The operation failed because the secret %s already exists.", n.Name)
}

func check(description string, key *string, tags []kurabe.Tag) error {
	if len([]rune(description)) > descriptionMax {
		return invalid("A description has at most %d characters.", descriptionMax)
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return checkTags(tags)
}

func checkKey(key *string) error {
	if key == nil || *key == "" || *key == DefaultKey || strings.HasSuffix(*key, ":"+DefaultKey) {
		return nil
	}
	return invalid("KmsKeyId %.100s: KMS is not offered; secrets are sealed with a key of the service, which has the name %s", *key, DefaultKey)
}

func checkTags(tags []kurabe.Tag) error {
	if len(tags) > tagsMax {
		return invalid("A secret has at most %d tags.", tagsMax)
	}
	seen := map[string]bool{}
	for _, tag := range tags {
		n := len([]rune(tag.Key))
		if n == 0 || n > 128 || len([]rune(tag.Value)) > 256 || strings.HasPrefix(strings.ToLower(tag.Key), "aws:") || seen[tag.Key] ||
			strings.ContainsFunc(tag.Key+tag.Value, unicode.IsControl) {
			return invalid("The key of a tag has 1 to 128 characters, is there once and does not begin with aws:, and its value has at most 256; neither has control characters.")
		}
		seen[tag.Key] = true
	}
	return nil
}

// Tag adds tags to a secret, or replaces those with the same keys.
func (s Secrets) Tag(ctx context.Context, id string, tags []kurabe.Tag) error {
	if err := checkTags(tags); err != nil {
		return err
	}
	_, err := s.change(ctx, id, func(secret *kurabe.Secret) error {
		kept := slices.DeleteFunc(slices.Clone(secret.Tags), func(old kurabe.Tag) bool {
			return slices.ContainsFunc(tags, func(t kurabe.Tag) bool { return t.Key == old.Key })
		})
		secret.Tags = append(kept, tags...)
		return checkTags(secret.Tags)
	})
	return err
}

// Untag removes tags of a secret by their keys.
func (s Secrets) Untag(ctx context.Context, id string, keys []string) error {
	_, err := s.change(ctx, id, func(secret *kurabe.Secret) error {
		secret.Tags = slices.DeleteFunc(slices.Clone(secret.Tags), func(t kurabe.Tag) bool { return slices.Contains(keys, t.Key) })
		return nil
	})
	return err
}

// Delete marks a secret, which is removed after days, 0 for the default, or at once by force. With
// force one that is not there is no error, and only its name is returned.
func (s Secrets) Delete(ctx context.Context, id string, days *int64, force bool) (secret kurabe.Secret, err error) {
	window := int64(defaultWindow)
	switch {
	case days != nil && (*days < minWindow || *days > maxWindow):
		return secret, invalid("The RecoveryWindowInDays value must be between %d and %d days (inclusive).", minWindow, maxWindow)
	case days != nil && force:
		return secret, invalid("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	case days != nil:
		window = *days
	}
	return secret, s.Update(ctx, func() (*store.Change, error) {
		r, err := s.Find(id)
		now := s.Now()
		switch {
		case kurabe.CodeOf(err) == kurabe.CodeResourceNotFound && force:
			secret = s.fresh(strings.TrimPrefix(id, "arn:"), "", nil)
			secret.DeleteAfter = now
			return nil, nil
		case err != nil:
			return nil, err
		case r.Value.Master != nil:
			return nil, badRequest(wordsManaged, r.Value.Name)
		}
		secret = r.Value
		if force {
			secret.DeletedAt, secret.DeleteAfter = now, now
			return store.NewChange().DeleteSecret(r.Value, r.ModRevision), nil
		}
		if !secret.DeletedAt.IsZero() {
			return nil, badRequest(wordsDeleted)
		}
		secret.DeletedAt, secret.DeleteAfter = now, now.Add(time.Duration(window)*24*time.Hour)
		return put(store.NewChange(), secret, r.ModRevision)
	})
}

// Restore ends the deletion of a secret; one that is not being deleted is no error.
func (s Secrets) Restore(ctx context.Context, id string) (secret kurabe.Secret, err error) {
	return secret, s.Update(ctx, func() (*store.Change, error) {
		r, err := s.Find(id)
		if err != nil {
			return nil, err
		}
		secret = r.Value
		if secret.DeletedAt.IsZero() {
			return nil, nil
		}
		secret.DeletedAt, secret.DeleteAfter = time.Time{}, time.Time{}
		return put(store.NewChange(), secret, r.ModRevision)
	})
}

// randomText returns n characters out of some that are all ASCII, each as likely as the others.
func randomText(of string, n int) string {
	out := make([]byte, 0, n)
	limit := 256 - 256%len(of) // a byte from there on would favour the first ones
	var b [64]byte
	for {
		rand.Read(b[:]) // never fails
		for _, c := range b {
			if len(out) == n {
				return string(out)
			}
			if int(c) < limit {
				out = append(out, of[int(c)%len(of)])
			}
		}
	}
}

// Foreign counts the versions whose values were sealed with another key.
func (s Secrets) Foreign() (n int) {
	for _, r := range s.View.Secrets() {
		for _, v := range r.Value.Versions {
			if v.Key != s.Sealer.Key {
				n++
			}
		}
	}
	return n
}
