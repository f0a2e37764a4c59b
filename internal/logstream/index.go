package logstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kurabe/internal/volume"
)

// Beside the spool files of a run lie two small files: "index" has a line for each
// piece in the repository (CRC-32C, space, JSON), so that a start need not read the
// repository, and "ended" the reason once nothing follows.
const (
	indexName = "index"
	endedName = "ended"
)

// indexLine is durable before the spool file of the piece goes.
func indexLine(p *piece) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text), nil
}

func appendIndex(dir string, p *piece) (err error) {
	line, err := indexLine(p)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, indexName)
	_, missing := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil && missing != nil {
		err = volume.SyncDir(dir)
	}
	return err
}

func writeIndex(dir string, pieces []*piece) error {
	var text []byte
	for _, p := range pieces {
		line, err := indexLine(p)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	return volume.AtomicWrite(filepath.Join(dir, indexName), text, 0o600)
}

// readIndex gives the pieces of all whole lines. A torn one is a piece that is in the
// spool still, so whole is false and the caller writes the index anew.
func readIndex(dir string) (pieces []*piece, whole bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	whole = true
	for line := range bytes.Lines(text) {
		p, ok := parseIndexLine(line)
		if !ok {
			whole = false
			continue
		}
		pieces = append(pieces, p)
	}
	return pieces, whole, nil
}

func parseIndexLine(line []byte) (*piece, bool) {
	sum, rest, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if !ok || fmt.Sprintf("%08x", crc32.Checksum(rest, castagnoli)) != string(sum) {
		return nil, false
	}
	p := &piece{pushed: true, closed: true}
	if json.Unmarshal(rest, p) != nil || checkPart(p.File) != nil || p.Start < 0 || p.End <= p.Start {
		return nil, false
	}
	return p, true
}

func readEnded(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, endedName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

func writeEnded(dir, reason string) error {
	return volume.AtomicWrite(filepath.Join(dir, endedName), []byte(reason+"\n"), 0o600)
}
