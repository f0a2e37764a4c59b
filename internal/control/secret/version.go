package secret

import (
	"context"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// checkValue checks a value by Secrets Manager's bounds.
func checkValue(v Value) error {
	if n := len(v.Secret.Reveal()); n == 0 || n > valueBytesMax {
		return invalid("The value of a secret has 1 to %d bytes.", valueBytesMax)
	}
	return nil
}

func checkToken(token string) error {
	if len(token) < tokenMin || len(token) > tokenMax {
		return invalid("ClientRequestToken must be %d-%d characters long.", tokenMin, tokenMax)
	}
	if slices.ContainsFunc([]byte(token), func(c byte) bool { return c <= ' ' || c > '~' || c == '/' }) {
		return invalid("ClientRequestToken has printable ASCII characters besides / only.")
	}
	return nil
}

// same says why a version is not one with this value.
func (s Secrets) same(ctx context.Context, secret kurabe.Secret, id kurabe.SecretVersionID, v Value) error {
	kept, err := s.open(ctx, secret, id)
	if err == nil && kept != v {
		err = exists(wordsTokenHas, id, secret.ARN)
	}
	return err
}

// open reads the value of a version.
func (s Secrets) open(ctx context.Context, secret kurabe.Secret, id kurabe.SecretVersionID) (Value, error) {
	v, known := secret.Version(id)
	sealed, err := store.SecretValue(ctx, s.KV, secret.ID, id)
	if err != nil {
		return Value{}, scope.Error(err)
	}
	if !known || sealed == nil {
		return Value{}, kurabe.Errorf(kurabe.CodeResourceNotFound, wordsNoValue, "VersionId", id)
	}
	return s.Sealer.Open(secret.ARN, v, sealed)
}

// addVersion gives a secret a new version in a change, or finds that the token has made it before
// with the same value. The first version of a secret is the current one in any case.
func (s Secrets) addVersion(ctx context.Context, change *store.Change, secret kurabe.Secret, token string, v Value, stages []string) (kurabe.Secret, kurabe.SecretVersionID, error) {
	if err := checkValue(v); err != nil {
		return secret, "", err
	}
	if token == "" {
		token = kurabe.NewUUID()
	}
	if err := checkToken(token); err != nil {
		return secret, "", err
	}
	id := kurabe.SecretVersionID(token)
	if _, has := secret.Version(id); has {
		return secret, id, s.same(ctx, secret, id, v)
	}
	if len(secret.Versions) == 0 && !slices.Contains(stages, kurabe.StageCurrent) {
		stages = append(slices.Clone(stages), kurabe.StageCurrent)
	}
	with, err := s.seal(change, secret, id, v)
	if err != nil {
		return secret, "", err
	}
	for _, stage := range stages {
		with = with.MoveStage(stage, id)
	}
	return with, id, checkStages(with)
}

// seal gives a secret a version that has no stage yet, in a change.
func (s Secrets) seal(change *store.Change, secret kurabe.Secret, id kurabe.SecretVersionID, v Value) (kurabe.Secret, error) {
	sealed := s.Sealer.Seal(secret.ARN, id, v)
	if _, bytes := s.View.SecretBytes(); bytes+len(sealed) > valuesBytesMax {
		return secret, tooMany("The values of all secrets have %d bytes already, and at most %d: delete secrets or remove staging labels of old versions.", bytes, valuesBytesMax)
	}
	with, removed, room := secret.AddVersion(kurabe.SecretVersion{ID: id, CreatedAt: s.Now(), Bytes: len(sealed), Key: s.Sealer.Key})
	if !room {
		return secret, tooMany("The secret has %d versions with staging labels, which is the limit.", kurabe.SecretVersionsMax)
	}
	for _, old := range removed {
		change.DeleteSecretValue(secret.ID, old)
	}
	change.PutSecretValue(secret.ID, id, sealed)
	with.ChangedAt = s.Now()
	return with, nil
}

// checkStages checks the stages of a secret by Secrets Manager's bounds.
func checkStages(secret kurabe.Secret) error {
	n := 0
	for _, v := range secret.Versions {
		n += len(v.Stages)
		for _, stage := range v.Stages {
			if stage == "" || len(stage) > stageBytesMax {
				return invalid("A staging label has 1 to %d characters.", stageBytesMax)
			}
		}
	}
	if n > stagesMax {
		return tooMany("A secret has at most %d staging labels.", stagesMax)
	}
	return nil
}

// Edit is a request to change a secret; what is nil stays.
type Edit struct {
	Token       string
	Description *string
	KMSKey      *string
	Value       *Value
	Stages      []string // of the value
}

// Edit changes a secret, and gives it a new version if there is a value.
func (s Secrets) Edit(ctx context.Context, id string, e Edit) (secret kurabe.Secret, version kurabe.SecretVersionID, err error) {
	if err := checkKey(e.KMSKey); err != nil {
		return secret, "", err
	}
	return secret, version, s.Update(ctx, func() (*store.Change, error) {
		r, err := s.own(id)
		if err != nil {
			return nil, err
		}
		secret = r.Value
		change := store.NewChange()
		if e.Description != nil {
			secret.Description = *e.Description
		}
		if e.KMSKey != nil {
			secret.KMSKey = *e.KMSKey
		}
		if err := check(secret.Description, nil, nil); err != nil {
			return nil, err
		}
		if e.Value != nil {
			if secret, version, err = s.addVersion(ctx, change, secret, e.Token, *e.Value, e.Stages); err != nil {
				return nil, err
			}
			if change.Empty() && e.Description == nil && e.KMSKey == nil {
				return nil, nil // the same request came twice
			}
		}
		secret.ChangedAt = s.Now()
		return put(change, secret, r.ModRevision)
	})
}

// Restage moves a stage between versions of a secret; from or to is "" for none.
func (s Secrets) Restage(ctx context.Context, id, stage string, from, to kurabe.SecretVersionID) (kurabe.Secret, error) {
	return s.change(ctx, id, func(secret *kurabe.Secret) error {
		at, has := secret.Staged(stage)
		for _, v := range []kurabe.SecretVersionID{from, to} {
			if _, known := secret.Version(v); v != "" && !known {
				return invalid("Not a valid version: %s", v)
			}
		}
		switch {
		case from == "" && to == "":
			return invalid("You must specify RemoveFromVersionId, MoveToVersionId, or both.")
		case has && from == "" && at.ID != to:
			return invalid("The parameter RemoveFromVersionId can't be empty. Staging label %s is currently attached to version %s, so you must explicitly reference that version in RemoveFromVersionId.", stage, at.ID)
		case from != "" && (!has || at.ID != from):
			return invalid("Version stage %s not found in version %s", stage, from)
		case to == "" && stage == kurabe.StageCurrent:
			return invalid("You can only move staging label AWSCURRENT to a different secret version. It can’t be completely removed.")
		}
		*secret = secret.MoveStage(stage, to)
		return checkStages(*secret)
	})
}

// Opened is a version of a secret with its value.
type Opened struct {
	Secret  kurabe.Secret
	Version kurabe.SecretVersion
	Value   Value
}

// Read opens a version of a secret for a user: the one with an id, with a stage, or the current one.
func (s Secrets) Read(ctx context.Context, id string, version kurabe.SecretVersionID, stage string) (Opened, error) {
	o, err := s.Reveal(ctx, id, version, stage)
	if err != nil {
		return o, err
	}
	day := s.Now().UTC().Truncate(24 * time.Hour)
	if o.Version.AccessedAt.Equal(day) {
		return o, nil
	}
	// Once a day it is noted that somebody reads it.
	return o, s.Update(ctx, func() (*store.Change, error) {
		r, err := s.Find(o.Secret.ARN)
		if err != nil {
			return nil, nil // it is gone by now
		}
		r.Value.AccessedAt, r.Value.Versions = day, slices.Clone(r.Value.Versions)
		for n := range r.Value.Versions {
			if v := &r.Value.Versions[n]; v.ID == o.Version.ID {
				v.AccessedAt = day
			}
		}
		return put(store.NewChange(), r.Value, r.ModRevision)
	})
}

// Reveal opens a version of a secret for whoever may have it: the one with an id, with a stage, or
// the current one. id is the name or the ARN of the secret.
func (s Secrets) Reveal(ctx context.Context, id string, version kurabe.SecretVersionID, stage string) (Opened, error) {
	r, err := s.live(id)
	if err != nil {
		return Opened{}, err
	}
	found, has := kurabe.SecretVersion{}, false
	switch {
	case version != "":
		if found, has = r.Value.Version(version); !has {
			return Opened{}, kurabe.Errorf(kurabe.CodeResourceNotFound, wordsNoValue, "VersionId", version)
		}
		if stage != "" && !slices.Contains(found.Stages, stage) {
			return Opened{}, badRequest("You provided a VersionStage that is not associated to the provided VersionId.")
		}
	default:
		if stage == "" {
			stage = kurabe.StageCurrent
		}
		if found, has = r.Value.Staged(stage); !has {
			return Opened{}, kurabe.Errorf(kurabe.CodeResourceNotFound, wordsNoValue, "staging label", stage)
		}
	}
	v, err := s.open(ctx, r.Value, found.ID)
	return Opened{r.Value, found, v}, err
}
