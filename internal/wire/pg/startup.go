package pg

import (
	"encoding/binary"
	"strings"
)

// StartupBytesMax bounds the first message of a client, as the server does.
const StartupBytesMax = 10000

// Codes that a first message begins with instead of a version.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
)

// StartupKind is what a client's first message asks for.
type StartupKind int

// Kinds of first messages.
const (
	StartupSession StartupKind = iota
	StartupCancel
	StartupSSL
	StartupGSS
)

// Startup is a client's first message.
type Startup struct {
	Kind       StartupKind
	Minor      int    // of the protocol's version 3
	Cancel     uint64 // the key of the session whose query is to be cancelled
	Parameters []Setting
	Unknown    []string // options of the protocol that nobody knows yet
}

// Setting is a parameter and its value.
type Setting struct{ Name, Value string }

// Get gives a parameter's last value.
func (s *Startup) Get(name string) string {
	var value string
	for _, p := range s.Parameters {
		if p.Name == name {
			value = p.Value
		}
	}
	return value
}

// ReadStartup reads a first message, which has no type. size is 0 when it is not there as a
// whole; ok is false for what is none.
func ReadStartup(data []byte) (s *Startup, size int, ok bool) {
	if len(data) < 4 {
		return nil, 0, true
	}
	length := binary.BigEndian.Uint32(data)
	if length < 8 || length > StartupBytesMax {
		return nil, 0, false
	}
	size = int(length)
	if len(data) < size {
		return nil, 0, true
	}
	code, body := binary.BigEndian.Uint32(data[4:]), data[8:size]
	s = &Startup{}
	switch {
	case code == codeSSL:
		s.Kind = StartupSSL
		return s, size, len(body) == 0
	case code == codeGSS:
		s.Kind = StartupGSS
		return s, size, len(body) == 0
	case code == codeCancel && len(body) == 8:
		s.Kind, s.Cancel = StartupCancel, binary.BigEndian.Uint64(body)
		return s, size, true
	case code>>16 != 3:
		return nil, 0, false
	}
	s.Minor = int(code & 0xffff)
	return s, size, s.read(body)
}

func (s *Startup) read(body []byte) bool {
	for len(body) > 0 && body[0] != 0 {
		name, rest, ok := Text(body)
		if !ok {
			return false
		}
		value, rest, ok := Text(rest)
		if !ok {
			return false
		}
		body = rest
		if strings.HasPrefix(string(name), "_pq_.") {
			s.Unknown = append(s.Unknown, string(name))
			continue
		}
		s.Parameters = append(s.Parameters, Setting{string(name), string(value)})
	}
	return len(body) == 1
}

// AppendStartup adds the first message of a client.
func AppendStartup(b []byte, parameters ...Setting) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 0), 3<<16)
	for _, p := range parameters {
		b = append(append(b, p.Name...), 0)
		b = append(append(b, p.Value...), 0)
	}
	b = append(b, 0)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// AppendSSLRequest adds the question whether the server speaks TLS.
func AppendSSLRequest(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 8), codeSSL)
}

// AppendCancel adds a CancelRequest.
func AppendCancel(b []byte, key uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 16), codeCancel), key)
}

// AppendNegotiation adds the answer to a version or options that are too new.
func AppendNegotiation(b []byte, unknown []string) []byte {
	b, start := Begin(b, 'v')
	b = binary.BigEndian.AppendUint32(b, 3<<16)
	b = binary.BigEndian.AppendUint32(b, uint32(len(unknown)))
	for _, u := range unknown {
		b = append(append(b, u...), 0)
	}
	return End(b, start)
}

// Options reads the startup parameter "options", the server's command line: settings as
// "-c name=value" or "--name=value". ok is false for anything else.
func Options(text string) (settings []Setting, ok bool) {
	words := optionWords(text)
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-c" && i+1 < len(words):
			i++
			word = words[i]
		case strings.HasPrefix(word, "-c"):
			word = word[2:]
		case strings.HasPrefix(word, "--"):
			word = word[2:]
		default:
			return nil, false
		}
		name, value, found := strings.Cut(word, "=")
		if !found || name == "" {
			return nil, false
		}
		settings = append(settings, Setting{strings.ReplaceAll(name, "-", "_"), value})
	}
	return settings, true
}

// optionWords splits at spaces; a backslash takes the meaning of the next character.
func optionWords(text string) []string {
	var words []string
	var word strings.Builder
	within := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			within = true
		case c == ' ' || c >= '\t' && c <= '\r':
			if within {
				words = append(words, word.String())
				word.Reset()
				within = false
			}
		default:
			word.WriteByte(c)
			within = true
		}
	}
	if within {
		words = append(words, word.String())
	}
	return words
}
