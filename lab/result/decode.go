package result

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of a file. A trial of five minutes in bins of 100 ms with ten histograms has
// about 200 KB; 2,000 of them are the largest study that is meant.
const (
	maxLineBytes = 4 << 20
	maxLines     = 100_000
	maxFileBytes = 512 << 20
	hashDigits   = 32 // of the SHA-256 of the line before, in hexadecimal
)

// head is what every line has beside its record.
type head struct {
	Kind string `json:"t"`
	Prev string `json:"prev"`
}

// Decode reads a file and checks all of it: the chain, the order, every number and
// histogram. A last line that was cut off is left out and its length given in Torn;
// anything else that is wrong is an error that names the line and the field.
func Decode(r io.Reader) (*File, error) {
	d := newDecoder()
	if err := d.read(r); err != nil {
		return nil, err
	}
	return d.file, nil
}

// decoder holds what the next line depends on. Reader and Writer share it, so that
// nothing can be written that cannot be read.
type decoder struct {
	file  *File
	check *checker // nil before the study
	prev  string   // what the next line must have as prev
	line  int      // lines that were taken
	good  int64    // bytes of those, with their ends
	open  bool     // the last of them has no end
}

func newDecoder() *decoder {
	return &decoder{file: &File{Settings: map[string]map[string]string{}}}
}

func (d *decoder) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, ended, err := readLine(in)
		if err != nil {
			return fmt.Errorf("line %d: %w", d.line+1, err)
		}
		if len(line) == 0 && !ended {
			break
		}
		if isTorn(line, ended) {
			if err := d.tear(in, line, ended); err != nil {
				return err
			}
			break
		}
		if err := d.take(line); err != nil {
			return fmt.Errorf("line %d: %w", d.line+1, err)
		}
		d.advance(line, ended)
		if d.good > maxFileBytes {
			return fmt.Errorf("the file is larger than %d bytes", int64(maxFileBytes))
		}
	}
	if d.line == 0 {
		return errors.New("there is no study in the file")
	}
	return nil
}

// isTorn tells a line that a crash cut off. A file system may leave zeros where the
// data of the last write did not arrive.
func isTorn(line []byte, ended bool) bool {
	return bytes.IndexByte(line, 0) >= 0 || !ended && !json.Valid(line)
}

// tear leaves out what a crash cut off; that can only be the last line.
func (d *decoder) tear(in *bufio.Reader, line []byte, ended bool) error {
	d.file.Torn = len(line)
	if !ended {
		return nil
	}
	d.file.Torn++
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: it is damaged, and others follow", d.line+1)
	}
	return nil
}

func (d *decoder) advance(line []byte, ended bool) {
	d.line++
	d.good += int64(len(line))
	if d.open = !ended; ended {
		d.good++
	}
	d.prev = hash(line)
}

// readLine returns a line without its end, and whether it had one; nothing at the end
// of the file.
func readLine(in *bufio.Reader) (line []byte, ended bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLineBytes:
			return nil, false, fmt.Errorf("it has more than %d bytes", maxLineBytes)
		case err == nil:
			return line[:len(line)-1], true, nil
		case errors.Is(err, io.EOF):
			return line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])[:hashDigits]
}

// take checks a line and adds its record to the file.
func (d *decoder) take(line []byte) error {
	if d.line >= maxLines {
		return fmt.Errorf("a file has at most %d lines", maxLines)
	}
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return clearJSON(err)
	}
	if h.Kind == "" {
		return errors.New("t: the kind of the record is not there")
	}
	record, err := decodeRecord(h.Kind, line)
	if err != nil {
		return err
	}
	if err := d.accept(record); err != nil {
		return fmt.Errorf("%s: %w", h.Kind, err)
	}
	// After the rest, since a study of another version may have another chain.
	if h.Prev != d.prev {
		return fmt.Errorf("%s: prev: the chain is broken: %q should be %q, so this line or one before it was changed, added or removed", h.Kind, h.Prev, d.prev)
	}
	d.add(record)
	return nil
}

// decodeRecord returns a pointer to the record of that kind.
func decodeRecord(kind string, line []byte) (any, error) {
	var into, record any
	switch kind {
	case KindStudy:
		x := new(struct {
			head
			Study
		})
		into, record = x, &x.Study
	case KindEnv:
		x := new(struct {
			head
			Env
		})
		into, record = x, &x.Env
	case KindSettings:
		x := new(struct {
			head
			Settings
		})
		into, record = x, &x.Settings
	case KindTrial:
		x := new(struct {
			head
			Trial
		})
		into, record = x, &x.Trial
	case KindEvent:
		x := new(struct {
			head
			Event
		})
		into, record = x, &x.Event
	case KindEnd:
		x := new(struct {
			head
			End
		})
		into, record = x, &x.End
	default:
		return nil, fmt.Errorf("t: %q is no kind of record", kind)
	}
	// An unknown field would be a fact that figures silently leave out.
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if kind == KindStudy {
			if other := otherFormat(line); other != nil {
				return nil, other
			}
		}
		return nil, fmt.Errorf("%s: %w", kind, clearJSON(err))
	}
	return record, nil
}

// otherFormat says that a study is of another version, which is why its fields are
// not known.
func otherFormat(line []byte) error {
	var s struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(line, &s); err != nil || s.Format == Format {
		return nil
	}
	return formatError(s.Format)
}

func formatError(format string) error {
	return fmt.Errorf("format: %q is not %q, the only one that this version reads", format, Format)
}

// clearJSON names the field without the names of our types.
func clearJSON(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field
		for _, embedded := range []string{"head.", "Study.", "Env.", "Settings.", "Trial.", "Event.", "End."} {
			field = strings.TrimPrefix(field, embedded)
		}
		if field == "" {
			return fmt.Errorf("the line is a JSON %s, not an object", wrong.Value)
		}
		return fmt.Errorf("%s: a JSON %s does not fit", field, wrong.Value)
	}
	return fmt.Errorf("no JSON of this format: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// accept checks a record against those before it.
func (d *decoder) accept(record any) error {
	s, isStudy := record.(*Study)
	switch {
	case isStudy && d.check != nil:
		return errors.New("a file has one study")
	case isStudy:
		return checkStudy(s)
	case d.check == nil:
		return errors.New("it stands before the study")
	}
	return d.check.record(record)
}

// add puts a record that was accepted into the file.
func (d *decoder) add(record any) {
	switch x := record.(type) {
	case *Study:
		d.file.Study, d.check = *x, newChecker(x)
	case *Env:
		d.file.Env = append(d.file.Env, *x)
	case *Settings:
		d.file.Settings[x.Variant] = x.Values
	case *Trial:
		d.file.Trials = append(d.file.Trials, *x)
	case *Event:
		d.file.Events = append(d.file.Events, *x)
	case *End:
		d.file.Ends = append(d.file.Ends, *x)
	}
}
