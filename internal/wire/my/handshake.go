package my

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ScrambleBytes is the length of the greeting's random bytes.
const ScrambleBytes = 20

// ErrMalformed says that a packet does not follow the protocol.
var ErrMalformed = errors.New("malformed packet")

// Greeting is the server's first packet.
type Greeting struct {
	Version      string
	ThreadID     uint32
	Scramble     [ScrambleBytes]byte // without zeros when it is sent: they end it
	Capabilities uint64
	Collation    byte
	Status       uint16
	Plugin       string
}

// Append appends the payload.
func (g *Greeting) Append(to []byte) []byte {
	to = append(to, 10)
	to = append(append(to, g.Version...), 0)
	to = binary.LittleEndian.AppendUint32(to, g.ThreadID)
	to = append(append(to, g.Scramble[:8]...), 0)
	to = binary.LittleEndian.AppendUint16(to, uint16(g.Capabilities))
	to = append(to, g.Collation)
	to = binary.LittleEndian.AppendUint16(to, g.Status)
	to = binary.LittleEndian.AppendUint16(to, uint16(g.Capabilities>>16))
	to = append(to, ScrambleBytes+1, 0, 0, 0, 0, 0, 0)
	to = binary.LittleEndian.AppendUint32(to, uint32(g.Capabilities>>32))
	to = append(append(to, g.Scramble[8:]...), 0)
	return append(append(to, g.Plugin...), 0)
}

// ReadGreeting reads the payload of a greeting, or the error that a server sends instead.
func ReadGreeting(p []byte) (*Greeting, error) {
	if len(p) > 0 && p[0] == 0xff {
		return nil, ReadError(p)
	}
	r := Reader{Rest: p}
	if version := r.Byte(); version != 10 {
		return nil, fmt.Errorf("greeting of protocol %d: %w", version, ErrMalformed)
	}
	g := &Greeting{Version: string(r.ZeroText()), ThreadID: r.Uint32()}
	copy(g.Scramble[:8], r.Bytes(8))
	r.Byte()
	g.Capabilities = uint64(r.Uint16())
	g.Collation, g.Status = r.Byte(), r.Uint16()
	g.Capabilities |= uint64(r.Uint16()) << 16
	length := int(r.Byte())
	r.Bytes(6)
	g.Capabilities |= uint64(r.Uint32()) << 32
	if g.Capabilities&LongPassword != 0 {
		g.Capabilities &= 1<<32 - 1 // MySQL has no more
	}
	copy(g.Scramble[8:], r.Bytes(max(13, length-8)))
	if g.Capabilities&PluginAuth != 0 {
		g.Plugin = string(r.ZeroText())
	}
	if r.Bad {
		return nil, fmt.Errorf("greeting: %w", ErrMalformed)
	}
	return g, nil
}

// loginFixedBytes is what a request for TLS has in common with a login.
const loginFixedBytes = 32

// Login is the client's answer to the greeting. Its texts are part of the packet.
type Login struct {
	Capabilities uint64
	PacketMax    uint32
	Collation    byte
	User         []byte
	Answer       []byte // of the authentication
	Database     []byte
	Plugin       []byte
	WantsTLS     bool // and nothing else is set but the first three
}

// ReadLogin reads the payload.
func ReadLogin(p []byte) (Login, error) {
	r := Reader{Rest: p}
	l := Login{Capabilities: uint64(r.Uint32())}
	if !r.Bad && l.Capabilities&Protocol41 == 0 {
		return l, fmt.Errorf("a client of before MySQL 4.1: %w", ErrMalformed)
	}
	l.PacketMax, l.Collation = r.Uint32(), r.Byte()
	r.Bytes(19)
	more := r.Uint32()
	if l.Capabilities&LongPassword == 0 {
		l.Capabilities |= uint64(more) << 32
	}
	if l.WantsTLS = len(p) == loginFixedBytes && l.Capabilities&SSL != 0; l.WantsTLS {
		return l, nil
	}
	l.User = r.ZeroText()
	switch {
	case l.Capabilities&AuthLenenc != 0:
		l.Answer = r.Text()
	case l.Capabilities&SecureConnection != 0:
		l.Answer = r.Bytes(int(r.Byte()))
	default:
		l.Answer = r.ZeroText()
	}
	if l.Capabilities&ConnectWithDB != 0 {
		l.Database = r.ZeroText()
	}
	if l.Capabilities&PluginAuth != 0 && len(r.Rest) > 0 {
		l.Plugin = r.ZeroText()
	}
	if r.Bad {
		return Login{}, fmt.Errorf("login: %w", ErrMalformed)
	}
	return l, nil
}

// AppendFixed appends the first part of the payload, which alone asks for TLS.
func (l *Login) AppendFixed(to []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(l.Capabilities))
	to = binary.LittleEndian.AppendUint32(to, l.PacketMax)
	to = append(append(to, l.Collation), make([]byte, 19)...)
	return binary.LittleEndian.AppendUint32(to, uint32(l.Capabilities>>32))
}

// Append appends the payload. Capabilities have to include Protocol41 and AuthLenenc.
func (l *Login) Append(to []byte) []byte {
	to = append(append(l.AppendFixed(to), l.User...), 0)
	to = AppendText(to, l.Answer)
	if l.Capabilities&ConnectWithDB != 0 {
		to = append(append(to, l.Database...), 0)
	}
	if l.Capabilities&PluginAuth != 0 {
		to = append(append(to, l.Plugin...), 0)
	}
	return to
}

// ReadChangeUser reads the payload of ComChangeUser behind the command, which a client with
// these capabilities has sent.
func ReadChangeUser(p []byte, capabilities uint64) (Login, error) {
	r := Reader{Rest: p}
	l := Login{Capabilities: capabilities, User: r.ZeroText()}
	if capabilities&SecureConnection != 0 {
		l.Answer = r.Bytes(int(r.Byte()))
	} else {
		l.Answer = r.ZeroText()
	}
	l.Database = r.ZeroText()
	if r.Bad {
		return Login{}, fmt.Errorf("change of the user: %w", ErrMalformed)
	}
	if len(r.Rest) >= 2 {
		l.Collation = byte(r.Uint16())
	}
	if capabilities&PluginAuth != 0 && len(r.Rest) > 0 {
		l.Plugin = r.ZeroText()
	}
	return l, nil
}

// AppendAuthSwitch appends the payload that asks for an answer by another plugin.
func AppendAuthSwitch(to []byte, plugin string, scramble []byte) []byte {
	to = append(append(append(to, 0xfe), plugin...), 0)
	return append(append(to, scramble...), 0)
}

// ReadAuthSwitch reads such a payload.
func ReadAuthSwitch(p []byte) (plugin string, scramble []byte, err error) {
	r := Reader{Rest: p}
	if r.Byte() != 0xfe {
		return "", nil, fmt.Errorf("switch of the plugin: %w", ErrMalformed)
	}
	plugin = string(r.ZeroText())
	if r.Bad {
		return "", nil, fmt.Errorf("switch of the plugin: %w", ErrMalformed)
	}
	scramble = r.Rest
	if n := len(scramble); n > 0 && scramble[n-1] == 0 {
		scramble = scramble[:n-1]
	}
	return plugin, scramble, nil
}
