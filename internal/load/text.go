package load

import (
	"encoding/json"
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
		if err := s.readTexts(file, func(t Text) { k.ids[t.ID], k.ids[t.pair()] = true, true }); err != nil {
			return t, err
		}
	}
	if hour := at / 3600; k.hour != hour {
		k.hour, k.full, k.tokenized = hour, 0, 0
	}
	if k.ids[t.ID] {
		return t, s.keepPair(t)
	}
	if t.ID != t.TokenizedID && k.full >= textsHourly {
		t.Statement, t.ID = t.Tokenized, t.TokenizedID
		if k.ids[t.ID] {
			return t, s.keepPair(t)
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
	k.ids[t.ID], k.ids[t.pair()] = true, true
	return t, s.writeText(t)
}

// pair names the server's number of a statement with the statement.
func (t Text) pair() string { return t.NativeID + " " + t.TokenizedID }

// keepPair has the file hold a further number of a statement, as which the server counts it in
// another database, for example.
func (s *server) keepPair(t Text) error {
	k := &s.texts
	if t.NativeID == "" || k.ids[t.pair()] || k.tokenized >= tokenizedHourly {
		return nil
	}
	k.tokenized++
	k.ids[t.pair()] = true
	return s.writeText(Text{TokenizedID: t.TokenizedID, NativeID: t.NativeID})
}

func (s *server) writeText(t Text) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return s.append(s.texts.file, frame(raw))
}

// readTexts calls have for each text of a file.
func (s *server) readTexts(file string, have func(Text)) error {
	return s.frames(file, false, func(body []byte) {
		var t Text
		if json.Unmarshal(body, &t) == nil {
			have(t)
		}
	})
}

// Texts returns the statements with the ids, with their own or those without literals, that a
// server has kept since a day.
func (s *server) find(ids map[string]bool, from, to int64) (map[string]Text, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]Text{}
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !within(f.Name(), textForm, from, to) {
			continue
		}
		err := s.readTexts(f.Name(), func(t Text) {
			if t.ID == "" { // of keepPair
				return
			}
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
