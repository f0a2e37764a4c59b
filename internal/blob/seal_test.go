package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"kurabe/internal/logkey"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

func sealBytes(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	form, err := io.ReadAll(newSealer(name, &source{ctx: t.Context(), r: bytes.NewReader(data)}))
	if err != nil {
		t.Fatal(err)
	}
	return form
}

func openBytes(form []byte, name string) ([]byte, error) {
	o, err := newOpener(bytes.NewReader(form), name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(o)
}

// text compresses and is more than one chunk long.
func text(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d rows were here, %x\n", i, uint32(i)*2654435761)
	}
	return b.Bytes()[:n]
}

// TestSealedIsZstd: a backup can be read without us.
func TestSealedIsZstd(t *testing.T) {
	for _, n := range []int{0, 1, chunkBytes, 3*chunkBytes + 5} {
		data := text(n)
		form := sealBytes(t, "a/b", data)
		d, err := zstd.NewReader(bytes.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(d)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: zstd gives %d, %v", n, len(got), err)
		}
		d.Close()
	}
}

// TestEveryBit: no flipped bit and no cut goes unnoticed, nor anything appended.
func TestEveryBit(t *testing.T) {
	data := text(300)
	form := sealBytes(t, "a/b", data)
	for i := range form {
		for bit := range 8 {
			bad := bytes.Clone(form)
			bad[i] ^= 1 << bit
			if got, err := openBytes(bad, "a/b"); err == nil {
				t.Fatalf("bit %d of byte %d of %d: read %d bytes without error", bit, i, len(form), len(got))
			}
		}
		if _, err := openBytes(form[:i], "a/b"); !errors.Is(err, errTorn) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := openBytes(append(bytes.Clone(form), 0), "a/b"); err == nil {
		t.Error("a byte more was accepted")
	}
	if _, err := openBytes(append(bytes.Clone(form), form...), "a/b"); err == nil {
		t.Error("the object twice was accepted")
	}
}

// TestChunksInOrder: whole chunks that are lost, repeated or exchanged.
func TestChunksInOrder(t *testing.T) {
	form := sealBytes(t, "a", text(3*chunkBytes))
	var cuts []int // beginnings of records
	for i := 0; i < len(form); {
		cuts = append(cuts, i)
		size := int(binary.LittleEndian.Uint32(form[i+4:]))
		record := form[i+8 : i+8+size]
		i += 8 + size
		if record[0] == 'C' {
			i += int(binary.LittleEndian.Uint32(record[9:]))
		}
	}
	if len(cuts) != 5 {
		t.Fatalf("%d records", len(cuts))
	}
	part := func(i int) []byte {
		if i == len(cuts)-1 {
			return form[cuts[i]:]
		}
		return form[cuts[i]:cuts[i+1]]
	}
	for _, order := range [][]int{{0, 1, 2, 4}, {0, 2, 3, 4}, {0, 1, 1, 2, 3, 4}, {0, 2, 1, 3, 4}, {0, 4}, {1, 2, 3, 4}, {0, 1, 2, 3}} {
		var bad []byte
		for _, i := range order {
			bad = append(bad, part(i)...)
		}
		if _, err := openBytes(bad, "a"); err == nil {
			t.Errorf("records %v were accepted", order)
		}
	}
}

// TestBomb: a chunk that unpacks to more than it declares is refused unpacked.
func TestBomb(t *testing.T) {
	form := appendHead(nil, "a")
	packed := packer().EncodeAll(make([]byte, 64<<20), nil)
	if len(packed) > packedBytesMax {
		t.Fatalf("the bomb has %d bytes", len(packed))
	}
	form = appendChunk(form, 0, 1000, packed)
	o, err := newOpener(bytes.NewReader(form), "a")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, o); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if cap(o.buf) > 2000 {
		t.Errorf("%d bytes were made for it", cap(o.buf))
	}
}

func TestNewerVersion(t *testing.T) {
	payload := append([]byte(sealMagic), 'H', sealVersion+1, 1, 0, 'a')
	repo, err := Init(t.Context(), filepath.Join(t.TempDir(), "repo"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := repo.Raw()
	if err := m.Put(t.Context(), "a", bytes.NewReader(appendRecord(nil, payload, nil))); err != nil {
		t.Fatal(err)
	}
	_, err = NewSealed(m, nil).Get(t.Context(), "a")
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "newer") {
		t.Error(err)
	}
}

func FuzzOpener(f *testing.F) {
	for _, n := range []int{0, 10, 5000} {
		f.Add(sealBytes(f, "a", text(n)))
	}
	f.Add(appendChunk(appendHead(nil, "a"), 0, 1000, packer().EncodeAll(make([]byte, 1<<20), nil)))
	f.Fuzz(func(t *testing.T, form []byte) {
		data, err := openBytes(form, "a")
		if err != nil {
			return
		}
		// What is accepted says what it is: it ends in its own digest.
		digest := sha256.Sum256(data)
		if !bytes.Equal(form[len(form)-36:len(form)-4], digest[:]) {
			t.Errorf("%d bytes were accepted with another digest", len(data))
		}
		if len(data) > len(form)/10*chunkBytes {
			t.Errorf("%d bytes from %d", len(data), len(form))
		}
	})
}

func FuzzDecrypt(f *testing.F) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	key, err := ParseKey(logkey.Secret(identity.String()))
	if err != nil {
		f.Fatal(err)
	}
	r, err := key.encrypt(bytes.NewReader(sealBytes(f, "a", []byte("content"))))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, form []byte) {
		plain, err := key.decrypt(bytes.NewReader(form))
		if err != nil {
			return
		}
		data, err := io.ReadAll(plain)
		if err == nil && !bytes.Equal(form, whole) {
			t.Errorf("%d bytes of another form were decrypted", len(data))
		}
	})
}

func FuzzLocation(f *testing.F) {
	for _, s := range []string{"/a", "s3://bucket/p?endpoint=http://h:1&region=r&style=path", "s3://u:p@b/", "s3://bucket/../x", "s3:///"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loc, err := parseLocation(text)
		if err != nil {
			return
		}
		if (loc.folder == "") == (loc.bucket == "") {
			t.Errorf("%q is %+v", text, loc)
		}
		if loc.prefix != "" && CheckName(loc.prefix) != nil {
			t.Errorf("%q has the prefix %q", text, loc.prefix)
		}
	})
}
