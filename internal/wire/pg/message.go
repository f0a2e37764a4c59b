package pg

import (
	"bytes"
	"encoding/binary"
)

// HeaderBytes is the size of a message's type and length.
const HeaderBytes = 5

// MessageBytesMax bounds a message, as the server does.
const MessageBytesMax = 1<<30 - 1

// Header gives the type of the message that data begins with and its size in bytes, header
// included. ok is false for a size that cannot be.
func Header(data []byte) (kind byte, size int, ok bool) {
	length := binary.BigEndian.Uint32(data[1:])
	return data[0], int(length) + 1, length >= 4 && length < MessageBytesMax
}

// Text cuts a string that ends with a zero byte off.
func Text(body []byte) (text, rest []byte, ok bool) {
	i := bytes.IndexByte(body, 0)
	if i < 0 {
		return nil, nil, false
	}
	return body[:i], body[i+1:], true
}

// Begin starts a message; End sets its length.
func Begin(b []byte, kind byte) (message []byte, start int) {
	return append(b, kind, 0, 0, 0, 0), len(b)
}

// End sets the length of the message that starts there and reaches to the end of b.
func End(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start+1:], uint32(len(b)-start-1))
	return b
}

// AppendHeader adds the header of a message of this size, which the header is part of.
func AppendHeader(b []byte, kind byte, size int) []byte {
	return binary.BigEndian.AppendUint32(append(b, kind), uint32(size-1))
}

// AppendText adds a message of one string.
func AppendText(b []byte, kind byte, text string) []byte {
	b = AppendHeader(b, kind, HeaderBytes+len(text)+1)
	return append(append(b, text...), 0)
}

// AppendNamed adds a Describe or Close: what is 'S' or 'P'.
func AppendNamed(b []byte, kind, what byte, name string) []byte {
	b = AppendHeader(b, kind, HeaderBytes+1+len(name)+1)
	b = append(b, what)
	return append(append(b, name...), 0)
}

// AppendParameter adds a ParameterStatus.
func AppendParameter(b []byte, name, value string) []byte {
	b = AppendHeader(b, 'S', HeaderBytes+len(name)+len(value)+2)
	b = append(append(b, name...), 0)
	return append(append(b, value...), 0)
}

// AppendReady adds a ReadyForQuery.
func AppendReady(b []byte, status byte) []byte {
	return append(AppendHeader(b, 'Z', HeaderBytes+1), status)
}

// AppendKey adds a BackendKeyData.
func AppendKey(b []byte, key uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendHeader(b, 'K', HeaderBytes+8), key)
}

// AppendAuthentication adds an AuthenticationRequest with its data.
func AppendAuthentication(b []byte, kind uint32, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(AppendHeader(b, 'R', HeaderBytes+4+len(data)), kind)
	return append(b, data...)
}

// Requests for authentication.
const (
	AuthenticationOk       = 0
	AuthenticationPassword = 3
	AuthenticationSASL     = 10
	AuthenticationContinue = 11
	AuthenticationFinal    = 12
)

// AppendMechanisms adds the request to choose a mechanism of SASL.
func AppendMechanisms(b []byte, mechanisms ...string) []byte {
	var data []byte
	for _, m := range mechanisms {
		data = append(append(data, m...), 0)
	}
	return AppendAuthentication(b, AuthenticationSASL, append(data, 0))
}

// AppendChosen adds a SASLInitialResponse.
func AppendChosen(b []byte, mechanism string, data []byte) []byte {
	b = AppendHeader(b, 'p', HeaderBytes+len(mechanism)+1+4+len(data))
	b = append(append(b, mechanism...), 0)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}

// Chosen reads the body of a SASLInitialResponse.
func Chosen(body []byte) (mechanism string, data []byte, ok bool) {
	name, rest, ok := Text(body)
	if !ok || len(rest) < 4 || int64(binary.BigEndian.Uint32(rest)) != int64(len(rest)-4) {
		return "", nil, false
	}
	return string(name), rest[4:], true
}

// Failure is what an ErrorResponse says, as far as it matters here.
type Failure struct {
	Severity, Code, Message string
	Detail, Hint            string
}

func (f *Failure) Error() string { return f.Message + " (SQLSTATE " + f.Code + ")" }

// Fatal says whether the connection ends with it.
func (f *Failure) Fatal() bool { return f.Severity == "FATAL" || f.Severity == "PANIC" }

// AppendFailure adds an ErrorResponse.
func AppendFailure(b []byte, f *Failure) []byte {
	b, start := Begin(b, 'E')
	for _, field := range [...]struct {
		kind byte
		text string
	}{{'S', f.Severity}, {'V', f.Severity}, {'C', f.Code}, {'M', f.Message}, {'D', f.Detail}, {'H', f.Hint}} {
		if field.text != "" {
			b = append(append(append(b, field.kind), field.text...), 0)
		}
	}
	return End(append(b, 0), start)
}

// ReadFailure reads the body of an ErrorResponse, or the beginning of one.
func ReadFailure(body []byte) *Failure {
	f := &Failure{}
	for len(body) > 0 && body[0] != 0 {
		text, rest, ok := Text(body[1:])
		if !ok {
			break
		}
		switch body[0] {
		case 'V':
			f.Severity = string(text)
		case 'C':
			f.Code = string(text)
		case 'M':
			f.Message = string(text)
		case 'D':
			f.Detail = string(text)
		case 'H':
			f.Hint = string(text)
		}
		body = rest
	}
	return f
}

// Row reads the values of a DataRow's body into values, as many as there is room for. A null
// is nil.
func Row(body []byte, values [][]byte) (n int, ok bool) {
	if len(body) < 2 {
		return 0, false
	}
	n = int(binary.BigEndian.Uint16(body))
	body = body[2:]
	for i := range n {
		if len(body) < 4 {
			return 0, false
		}
		length := int32(binary.BigEndian.Uint32(body))
		body = body[4:]
		if length < 0 {
			continue
		}
		if int(length) > len(body) {
			return 0, false
		}
		if i < len(values) {
			values[i] = body[:length]
		}
		body = body[length:]
	}
	return n, true
}
