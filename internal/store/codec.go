package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// catalogBytesMax bounds a catalog when unpacked: 2000 parameters of 1 KiB. A
// packed record of 100 KiB could otherwise claim 100 MiB of memory.
const catalogBytesMax = 2 << 20

// Record is a decoded record with the revision of its last write.
type Record[T any] struct {
	Value       T
	ModRevision int64
}

// encode is the one way a record becomes bytes. The size is checked here too,
// so that the error names the record even before there is a transaction.
func encode(key string, record any) ([]byte, error) {
	value, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode record %s: %w", key, err)
	}
	if len(value) > RecordBytesMax {
		return nil, fmt.Errorf("store: record %s has %d bytes; at most %d", key, len(value), RecordBytesMax)
	}
	return value, nil
}

// decode reads a record; fields that this version does not know are skipped, so
// that a downgrade can read what a newer version wrote.
func decode[T any](e Entry) (T, error) {
	var v T
	if err := json.Unmarshal(e.Value, &v); err != nil {
		return v, &CorruptError{Key: e.Key, Err: err}
	}
	return v, nil
}

// encodePacked is encode with gzip, for the catalogs: 400 parameters are 100 KB
// of JSON and 15 KB packed.
func encodePacked(key string, record any) ([]byte, error) {
	plain, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode record %s: %w", key, err)
	}
	if len(plain) > catalogBytesMax {
		return nil, fmt.Errorf("store: record %s has %d bytes unpacked; at most %d", key, len(plain), catalogBytesMax)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, werr := w.Write(plain)
	if err := errors.Join(werr, w.Close()); err != nil {
		return nil, fmt.Errorf("pack record %s: %w", key, err)
	}
	if b.Len() > RecordBytesMax {
		return nil, fmt.Errorf("store: record %s has %d bytes; at most %d", key, b.Len(), RecordBytesMax)
	}
	return b.Bytes(), nil
}

// decodePacked reads what encodePacked wrote.
func decodePacked[T any](e Entry) (T, error) {
	var zero T
	r, err := gzip.NewReader(bytes.NewReader(e.Value))
	if err != nil {
		return zero, &CorruptError{Key: e.Key, Err: err}
	}
	plain, err := io.ReadAll(io.LimitReader(r, catalogBytesMax+1))
	if err == nil && len(plain) > catalogBytesMax {
		err = fmt.Errorf("more than %d bytes unpacked", catalogBytesMax)
	}
	if err != nil {
		return zero, &CorruptError{Key: e.Key, Err: err}
	}
	return decode[T](Entry{Key: e.Key, Value: plain})
}
