package pg

import "strings"

// Marks are what a text does to its session, or may do.
type Marks uint32

// The marks.
const (
	MarkTemporary    Marks = 1 << iota // makes a temporary object that outlives its transaction
	MarkHold                           // declares a cursor that does
	MarkListen                         // listens
	MarkLoad                           // loads a library
	MarkSequence                       // takes a value of a sequence, which currval then tells
	MarkSequenceRead                   // asks for the value that the session took before
	MarkLock                           // takes an advisory lock of the session
	MarkPrepare                        // prepares by name
	MarkUntracked                      // changes what cannot be read: the session's user, the seed
	MarkAllSettings                    // may change any setting
	MarkBegin                          // begins a transaction
	MarkEnd                            // ends one
	MarkCommit                         // ends one so that it stays
	MarkDiscard                        // discards everything
	MarkDeallocate                     // forgets prepared statements
)

// Span is a part of a text, in bytes.
type Span struct{ Start, End int }

// Effects are what a text leaves in its session.
type Effects struct {
	Marks Marks
	// Settings are those that it changes.
	Settings []string
	// Prepared are where it names prepared statements (EXECUTE, DEALLOCATE).
	Prepared []Span
	// Statements is how many it has.
	Statements int
}

// Nothing says that nothing stays of it beyond its transaction.
func (e *Effects) Nothing() bool {
	return e.Marks&^(MarkBegin|MarkEnd|MarkCommit|MarkDeallocate) == 0 && e.Settings == nil && e.Prepared == nil
}

// namesMax bounds what is noted of one text.
const namesMax = 64

// Scanner reads a text piece by piece. The zero value is ready.
type Scanner struct {
	Effects
	lexer
	statement
}

// statement is the one that is being read.
type statement struct {
	first  word
	mode   mode
	tokens int
	name   []byte // of the setting
}

type word uint8

const (
	wordOther word = iota
	wordDo
	wordUpdate
	wordCreate
	wordDeclare
)

// mode is what the next token means.
type mode uint8

const (
	modeNone mode = iota
	modeSet
	modeSetSession
	modeSetName  // the name may go on
	modeSetValue // the first word of it
	modeReset
	modeResetName
	modeDiscard
	modePrepare
	modeRollback
	modePrepared // a prepared statement's name
	modeConfig   // set_config
	modeConfigOpen
	modeConfigComma
	modeHold
	modeTemp
	modeInto
	modeOnCommit
	modeOnCommitWhat
)

// Reset makes s ready for another text. backslash is standard_conforming_strings = off.
func (s *Scanner) Reset(backslash bool) {
	l := &s.lexer
	l.backslash, l.state, l.escapes, l.depth, l.offset = backslash, inCode, false, 0, 0
	s.Effects, s.statement = Effects{}, statement{name: s.name[:0]}
}

// Feed reads a piece.
func (s *Scanner) Feed(text []byte) { s.take(text) }

// End says what the text does, after all pieces.
func (s *Scanner) End() Effects {
	s.finish()
	return s.Effects
}

// Scan reads a whole text.
func Scan(text []byte, backslash bool) Effects {
	var s Scanner
	s.Reset(backslash)
	s.Feed(text)
	return s.End()
}

func (s *Scanner) touch(name string) {
	if len(s.Settings) >= namesMax {
		s.Marks |= MarkAllSettings
		return
	}
	for _, known := range s.Settings {
		if known == name {
			return
		}
	}
	s.Settings = append(s.Settings, name)
}

// token is called for each token; text of words and names is in s.word.
func (s *Scanner) token(kind tokenKind, symbol byte, start, end int) {
	if symbol == ';' {
		if s.mode == modeSetName || s.mode == modeSetValue || s.mode == modeResetName {
			s.named(s.mode == modeResetName)
		}
		if s.tokens > 0 {
			s.Statements++
		}
		if s.first == wordCreate && s.mode == modeOnCommit {
			s.Marks |= MarkTemporary
		}
		s.statement = statement{name: s.name[:0]}
		return
	}
	s.tokens++
	var text []byte
	if kind != tokenSymbol && s.length <= wordBytesMax {
		text = s.word[:s.length]
	}
	if s.tokens == 1 {
		if kind == tokenWord {
			s.begins(text)
		}
		return
	}
	if s.mode != modeNone && s.continues(kind, symbol, text, start, end) {
		return
	}
	if (kind == tokenWord || kind == tokenName) && len(text) >= 4 {
		s.anywhere(text)
	}
}

// begins looks at the first word of a statement.
func (s *Scanner) begins(text []byte) {
	switch string(text) {
	case "set":
		s.mode = modeSet
	case "reset":
		s.mode = modeReset
	case "discard":
		s.mode = modeDiscard
	case "listen":
		s.Marks |= MarkListen
	case "load":
		s.Marks |= MarkLoad
	case "prepare":
		s.mode = modePrepare
	case "execute":
		s.mode = modePrepared
	case "deallocate":
		s.Marks |= MarkDeallocate
		s.mode = modePrepared
	case "declare":
		s.first, s.mode = wordDeclare, modeHold
	case "create":
		s.first, s.mode = wordCreate, modeTemp
	case "begin", "start":
		s.Marks |= MarkBegin
	case "commit", "end":
		s.Marks |= MarkEnd | MarkCommit
	case "rollback", "abort":
		s.Marks |= MarkEnd
		s.mode = modeRollback
	case "do":
		s.Marks |= MarkAllSettings
		s.first = wordDo
	case "call":
		s.Marks |= MarkAllSettings
	case "update":
		s.first = wordUpdate
	}
}

// anywhere looks at a word that means something wherever it is.
func (s *Scanner) anywhere(text []byte) {
	switch string(text) {
	case "set_config":
		s.mode = modeConfig
	case "nextval", "setval":
		s.Marks |= MarkSequence
	case "currval", "lastval":
		s.Marks |= MarkSequenceRead
	case "pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock", "pg_try_advisory_lock_shared":
		s.Marks |= MarkLock
	case "setseed":
		s.Marks |= MarkUntracked
	case "execute":
		s.mode = modePrepared
	case "into":
		s.mode = modeInto
	case "pg_settings":
		if s.first == wordUpdate {
			s.Marks |= MarkAllSettings
		}
	}
}

// continues looks at a token that the ones before give a meaning. It says whether it has one.
func (s *Scanner) continues(kind tokenKind, symbol byte, text []byte, start, end int) bool {
	before := s.mode
	switch before {
	case modeSet, modeSetSession, modeSetName, modeSetValue, modeReset, modeResetName:
		s.setting(kind, symbol, text)
		return true
	case modeDiscard:
		s.mode = modeNone
		if string(text) == "all" {
			s.Marks |= MarkDiscard
		}
	case modePrepare:
		s.mode = modeNone
		if string(text) == "transaction" {
			s.Marks |= MarkEnd | MarkCommit
		} else {
			s.Marks |= MarkPrepare
		}
	case modeRollback:
		if word := string(text); word == "to" || word == "prepared" {
			s.Marks &^= MarkEnd
		}
		if word := string(text); word != "work" && word != "transaction" {
			s.mode = modeNone
		}
	case modePrepared:
		switch {
		case kind == tokenWord && string(text) == "prepare":
			return true
		case kind != tokenSymbol && kind != tokenString && len(s.Prepared) < namesMax && string(text) != "all":
			s.Prepared = append(s.Prepared, Span{start, end})
		}
		s.mode = modeNone
	case modeConfig, modeConfigOpen, modeConfigComma:
		s.config(kind, symbol, text)
	case modeHold:
		switch string(text) {
		case "hold":
			s.Marks |= MarkHold
		case "for", "without":
			s.mode = modeNone
		}
		return false
	default:
		s.temporary(kind, text)
		return s.mode != modeNone
	}
	return true
}

// config reads set_config('name', …).
func (s *Scanner) config(kind tokenKind, symbol byte, text []byte) {
	switch {
	case s.mode == modeConfig && symbol == '(':
		s.mode = modeConfigOpen
	case s.mode == modeConfigOpen && kind == tokenString && text != nil:
		s.name = append(s.name[:0], text...)
		s.mode = modeConfigComma
	case s.mode == modeConfigComma && symbol == ',':
		s.touch(strings.ToLower(string(s.name)))
		s.mode = modeNone
	default:
		s.Marks |= MarkAllSettings
		s.mode = modeNone
	}
}

// temporary reads CREATE TEMP …, CREATE … pg_temp.x and SELECT … INTO TEMP.
func (s *Scanner) temporary(kind tokenKind, text []byte) {
	word := string(text)
	switch s.mode {
	case modeInto:
		if word == "temp" || word == "temporary" {
			s.Marks |= MarkTemporary
		}
		s.mode = modeNone
	case modeTemp:
		switch word {
		case "temp", "temporary", "pg_temp":
			s.mode = modeOnCommit // until ON COMMIT DROP says otherwise
		case "or", "replace", "local", "global", "unlogged", "table", "view", "sequence", "if", "not", "exists", "recursive":
		default:
			s.mode = modeNone
		}
	case modeOnCommit:
		if kind == tokenWord && word == "commit" {
			s.mode = modeOnCommitWhat
		}
	case modeOnCommitWhat:
		s.mode = modeNone
		if word != "drop" {
			s.Marks |= MarkTemporary
		}
	}
}

// setting reads SET and RESET.
func (s *Scanner) setting(kind tokenKind, symbol byte, text []byte) {
	word := ""
	if kind == tokenWord {
		word = string(text)
	}
	switch s.mode {
	case modeSet, modeSetSession:
		s.set(kind, word, text)
	case modeSetName:
		switch {
		case symbol == '=' || word == "to":
			s.mode = modeSetValue
		case symbol == '.':
			s.name = append(s.name, '.')
		case len(s.name) > 0 && s.name[len(s.name)-1] == '.':
			s.name = append(s.name, text...)
		default:
			s.named(false) // ROLE x
		}
	case modeSetValue:
		s.named(word == "default")
	case modeReset:
		switch word {
		case "all":
			s.Marks |= MarkAllSettings
			s.mode = modeNone
		case "session":
			s.Marks |= MarkUntracked
			s.mode = modeNone
		default:
			s.set(kind, word, text)
			s.mode = modeResetName
		}
	case modeResetName:
		if symbol == '.' || len(s.name) > 0 && s.name[len(s.name)-1] == '.' {
			s.name = append(s.name, symbolOr(symbol, text)...)
		}
	}
}

func symbolOr(symbol byte, text []byte) []byte {
	if symbol != 0 {
		return []byte{symbol}
	}
	return text
}

// named ends the name of a setting. Of one that takes its default again, the value cannot be
// told apart from one that was set: all settings are looked at.
func (s *Scanner) named(reset bool) {
	s.touch(strings.ToLower(string(s.name)))
	if reset {
		s.Marks |= MarkAllSettings
	}
	s.mode = modeNone
}

// set looks at the word after SET, SET SESSION or RESET.
func (s *Scanner) set(kind tokenKind, word string, text []byte) {
	s.mode = modeNone
	switch word {
	case "local", "transaction", "constraints":
	case "session":
		s.mode = modeSetSession
	case "authorization", "seed":
		s.Marks |= MarkUntracked
	case "characteristics":
		s.touch("default_transaction_isolation")
		s.touch("default_transaction_read_only")
		s.touch("default_transaction_deferrable")
	case "time":
		s.alias("timezone")
	case "names":
		s.alias("client_encoding")
	case "schema":
		s.alias("search_path")
	case "xml":
		s.alias("xmloption")
	default:
		if kind == tokenWord || kind == tokenName {
			s.name = append(s.name[:0], text...)
			s.mode = modeSetName
		}
	}
}

// alias notes a setting with a syntax of its own. Its value may be DEFAULT.
func (s *Scanner) alias(name string) {
	s.touch(name)
	s.Marks |= MarkAllSettings
}
