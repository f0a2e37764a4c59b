package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/internal/engine"
)

// chunk is one of a stream, as the tool writes it.
func chunk(kind byte, name string, at int64, payload string) string {
	var b bytes.Buffer
	b.WriteString(streamMagic)
	b.WriteByte(0)
	b.WriteByte(kind)
	binary.Write(&b, binary.LittleEndian, uint32(len(name)))
	b.WriteString(name)
	if kind == streamPayload {
		binary.Write(&b, binary.LittleEndian, uint64(len(payload)))
		binary.Write(&b, binary.LittleEndian, uint64(at))
		binary.Write(&b, binary.LittleEndian, crc32.ChecksumIEEE([]byte(payload)))
		b.WriteString(payload)
	}
	return b.String()
}

func part(name string, at int64, payload string) string {
	return chunk(streamPayload, name, at, payload)
}
func last(name string) string { return chunk(streamEnd, name, 0, "") }

func TestStreamFiles(t *testing.T) {
	large := strings.Repeat("large", 1<<17)
	stream := part("./ibdata1", 0, large) + part("shop/t.ibd", 0, "first") + part("./ibdata1", int64(len(large)), "rest") + last("./ibdata1") +
		part("shop/t.ibd", 5, "second") + last("shop/t.ibd") + last("shop/empty.frm")
	dir := t.TempDir()
	var reported int64
	files, err := NewStreamFiles(t.Context(), dir, engine.CopyRequest{Progress: func(done, _ int64) { reported = done }}, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(readStream(strings.NewReader(stream), files), files.Close()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"ibdata1": large + "rest", "shop/t.ibd": "firstsecond", "shop/empty.frm": ""} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if want := int64(len(large) + 15); reported != want {
		t.Errorf("%d bytes were reported, want %d", reported, want)
	}
}

func TestDamagedStream(t *testing.T) {
	whole := part("./a", 0, "content") + last("./a")
	flipped := []byte(whole)
	flipped[len(part("./a", 0, ""))+2] ^= 1
	for name, c := range map[string]struct{ stream, want string }{
		"cut in a head":     {whole[:5], "in the middle of a chunk"},
		"cut in a payload":  {whole[:len(part("./a", 0, "content"))-3], "in the middle of a chunk"},
		"without an end":    {part("./a", 0, "content"), "in the middle of a"},
		"flipped":           {string(flipped), "the sum of a part of a"},
		"no stream":         {"2026-11-22 mariadb-backup: error", "begins with"},
		"an absolute path":  {part("/etc/passwd", 0, "x"), `"/etc/passwd"`},
		"a path upwards":    {part("./shop/../../x", 0, "x"), `"./shop/../../x"`},
		"no name":           {part(".", 0, "x"), `the path "."`},
		"a file twice":      {whole + whole, "exist"},
		"another type":      {chunk('S', "./a", 0, ""), `type 'S'`},
		"a path of nothing": {chunk(streamEnd, "", 0, ""), "a path of 0 bytes"},
		"far away":          {part("./a", -1, "x"), "bytes at"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := NewStreamFiles(t.Context(), t.TempDir(), engine.CopyRequest{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			if err := readStream(strings.NewReader(c.stream), files); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What waits for its turn ends with the call.
func TestStreamEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	files, err := NewStreamFiles(ctx, t.TempDir(), engine.CopyRequest{BytesPerSecondMax: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := readStream(strings.NewReader(part("./a.ibd", 0, "x")), files); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

type sinkNowhere struct{ bytes int64 }

func (s *sinkNowhere) write(name string, _ int64, part []byte) error {
	if !filepath.IsLocal(name) {
		panic(name)
	}
	s.bytes += int64(len(part))
	return nil
}

func (s *sinkNowhere) end(string) error { return nil }

func FuzzReadStream(f *testing.F) {
	f.Add([]byte(part("./a", 0, "content") + last("./a")))
	f.Add([]byte(part("a/b.ibd", 1<<40, "") + last("./c")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		sink := &sinkNowhere{}
		if err := readStream(bytes.NewReader(stream), sink); err == nil && sink.bytes > int64(len(stream)) {
			t.Errorf("%d bytes of %d", sink.bytes, len(stream))
		}
	})
}
