package blob

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
)

// An age file begins with a text: its version, a few lines for each recipient, and
// a line "--- MAC". We write one recipient (200 bytes; 1.7 KiB if post-quantum).
const (
	ageIntro       = "age-encryption.org/v1\n"
	ageHeadBytes   = 8 << 10
	ageBufferBytes = 64 << 10
)

func (k *Key) encrypt(r io.Reader) (io.Reader, error) { return age.EncryptReader(r, k.recipient) }

// decrypt refuses a head that is longer than ours can be, as age's parser has no
// bound of its own.
func (k *Key) decrypt(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, ageBufferBytes)
	head, err := in.Peek(ageHeadBytes) // less only at the end of the input
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte(ageIntro)) {
		if len(head) < len(ageIntro) {
			return nil, errTorn
		}
		return nil, errors.New("it is not encrypted, but this repository is")
	}
	if !bytes.Contains(head, []byte("\n---")) {
		return nil, errors.New("its encryption header does not end")
	}
	plain, err := age.Decrypt(in, k.identities...)
	var noMatch *age.NoIdentityMatchError
	if errors.As(err, &noMatch) {
		return nil, ErrKey
	}
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	return plain, nil
}
