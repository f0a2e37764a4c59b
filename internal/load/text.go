package load

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// textsHourly bounds the new texts of an hour, with literals and without. When there are
	// more, a statement is known without its literals only, and then not at all.
	textsHourly     = 1000
	tokenizedHourly = 1000
)

// known are the statements whose texts are in the file of a day.
type known struct {
	file      string
	ids       map[string]bool
	hour      int64
	full      int // new texts of the hour
	tokenized int
}

// keep has the file of the day hold the text of a statement, and returns which of its ids may be
// told. A text that cannot be written is told without its text.
func (s *server) keep(at int64, t Text) (Text, error) {
	if t.ID == "" {
		return Text{}, nil
	}
	k := &s.texts
	if file := name(textForm, at); k.file != file {
		k.file, k.ids = file, map[string]bool{}
		if err := s.readTexts(file, func(t Text) { k.ids[t.ID] = true }); err != nil {
			return t, err
		}
	}
	if hour := at / 3600; k.hour != hour {
		k.hour, k.full, k.tokenized = hour, 0, 0
	}
	if k.ids[t.ID] {
		return t, nil
	}
	if t.ID != t.TokenizedID && k.full >= textsHourly {
		t.Statement, t.ID = t.Tokenized, t.TokenizedID
		if k.ids[t.ID] {
			return t, nil
		}
	}
	if t.ID == t.TokenizedID {
		if k.tokenized >= tokenizedHourly {
			return Text{}, nil
		}
		k.tokenized++
	} else {
		k.full++
	}
	k.ids[t.ID] = true
	raw, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	return t, s.append(k.file, frame(raw))
}

// readTexts calls have for each text of a file. A file that is not there has none.
func (s *server) readTexts(file string, have func(Text)) error {
	raw, err := os.ReadFile(filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for err == nil && len(raw) > 0 {
		var body []byte
		if body, raw, err = unframe(raw); err != nil {
			return nil // what a crash cut off, or damage: the texts after it are unknown
		}
		var t Text
		if json.Unmarshal(body, &t) == nil {
			have(t)
		}
	}
	return err
}

// Texts returns the statements with the ids, with their own or those without literals, that a
// server has kept since a day.
func (s *server) find(ids map[string]bool, from, to int64) (map[string]Text, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]Text{}
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "texts-") || f.Name() < name(textForm, from) || f.Name() > name(textForm, to) {
			continue
		}
		err := s.readTexts(f.Name(), func(t Text) {
			if ids[t.ID] {
				found[t.ID] = t
			}
			if _, have := found[t.TokenizedID]; !have && ids[t.TokenizedID] {
				found[t.TokenizedID] = Text{ID: t.TokenizedID, TokenizedID: t.TokenizedID, NativeID: t.NativeID, Statement: t.Tokenized, Tokenized: t.Tokenized}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
