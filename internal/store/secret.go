package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"kurabe"
)

// PutSecret writes a secret that was read at mod, 0 for a new one.
func (c *Change) PutSecret(s kurabe.Secret, mod int64) *Change {
	key := secretKey(s.Name)
	return c.Require(key, mod).put(key, s, kurabe.SecretKey(s.Name))
}

// PutSecretValue writes the sealed value of a new version.
func (c *Change) PutSecretValue(id kurabe.SecretID, version kurabe.SecretVersionID, sealed []byte) *Change {
	if !keySafe(string(version)) {
		return c.fail(unsafeSegment(string(version)))
	}
	key := secretValueKey(id, version)
	return c.Require(key, 0).Put(key, sealed)
}

// DeleteSecretValue removes the value of a version.
func (c *Change) DeleteSecretValue(id kurabe.SecretID, version kurabe.SecretVersionID) *Change {
	return c.Delete(secretValueKey(id, version))
}

// DeleteSecret removes a secret that was read at mod, and its values.
func (c *Change) DeleteSecret(s kurabe.Secret, mod int64) *Change {
	key := secretKey(s.Name)
	c.Require(key, mod).Delete(key)
	for _, v := range s.Versions {
		c.DeleteSecretValue(s.ID, v.ID)
	}
	return c
}

// SecretValue reads the sealed value of a version from the store, nil where there is none: no View
// has values.
func SecretValue(ctx context.Context, kv KV, id kurabe.SecretID, version kurabe.SecretVersionID) ([]byte, error) {
	e, err := kv.Get(ctx, secretValueKey(id, version))
	return e.Value, err
}

// Secret returns a secret by its name.
func (v *View) Secret(name string) (Record[kurabe.Secret], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s, ok := v.state.secrets[kurabe.SecretKey(name)]
	return s, ok
}

// SecretByARN returns a secret by its ARN, also by one without the six characters at its end.
func (v *View) SecretByARN(arn string) (Record[kurabe.Secret], bool) {
	_, name, ok := strings.Cut(arn, ":secret:")
	if !ok {
		return Record[kurabe.Secret]{}, false
	}
	for _, end := range []int{strings.LastIndexByte(name, '-'), len(name)} {
		if end < 0 {
			continue
		}
		if s, there := v.Secret(name[:end]); there && (s.Value.ARN == arn || strings.HasPrefix(s.Value.ARN, arn+"-") && end == len(name)) {
			return s, true
		}
	}
	return Record[kurabe.Secret]{}, false
}

// MasterSecret returns the secret that has the password of an instance's master user.
func (v *View) MasterSecret(id kurabe.InstanceID) (Record[kurabe.Secret], bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s, ok := v.state.secrets[v.state.masterSecrets[id]]
	return s, ok
}

// MasterSecrets returns every secret that has the password of a master user, by key.
func (v *View) MasterSecrets() (list []Record[kurabe.Secret]) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Values(v.state.masterSecrets)) {
		list = append(list, v.state.secrets[key])
	}
	return list
}

// Secrets returns every secret, by name.
func (v *View) Secrets() []Record[kurabe.Secret] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := sortedByName(v.state.secrets)
	slices.SortFunc(out, func(a, b Record[kurabe.Secret]) int { return strings.Compare(a.Value.Name, b.Value.Name) })
	return out
}

// SecretBytes is the size of the sealed values of all secrets, and their number.
func (v *View) SecretBytes() (secrets, bytes int) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.state.secrets), v.state.secretBytes
}

func (s *state) putSecret(p keyParts, e Entry) error {
	next, err := decode[kurabe.Secret](e)
	if err != nil {
		return err
	}
	s.removeSecret(p)
	s.secrets[p.name] = Record[kurabe.Secret]{next, e.ModRevision}
	s.secretBytes += sealedBytes(next)
	if next.Master != nil {
		s.masterSecrets[next.Master.Instance] = p.name
	}
	return nil
}

func (s *state) removeSecret(p keyParts) {
	old, ok := s.secrets[p.name]
	if !ok {
		return
	}
	delete(s.secrets, p.name)
	s.secretBytes -= sealedBytes(old.Value)
	if m := old.Value.Master; m != nil && s.masterSecrets[m.Instance] == p.name {
		delete(s.masterSecrets, m.Instance)
	}
}

func sealedBytes(s kurabe.Secret) (n int) {
	for _, v := range s.Versions {
		n += v.Bytes
	}
	return n
}
