package document

import (
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

// Color is an enum, as the SDK has them.
type Color string

// Everything has each kind of member.
type Everything struct {
	Text     *string
	Own      string
	Color    Color
	Flag     *bool
	Small    *int32
	Large    *int64
	Real     *float64
	At       *time.Time
	Blob     []byte
	Names    []string
	Reals    []float64
	Sparse   []*string
	Below    *Below
	Many     []Below
	Tags     map[string]string
	Holes    map[string]*int32
	Nested   map[string][]Below
	Unions   interface{ isUnion() }
	Renamed  string `json:"other-name"`
	Hidden   int    `json:"-"`
	_        int    // no member: it cannot be set
	RealList [][]float32
}

// Below must have a name.
type Below struct {
	Name *string
	More *Below
}

// level reads itself from text.
type level int

func (l *level) UnmarshalText(text []byte) error {
	if *l = level(len(text)); strings.Trim(string(text), "*") != "" {
		return errors.New("no level")
	}
	return nil
}

var lower = shape.New(shape.Text{Lower: true, Names: "Everything.Blob=BLOB", Required: "Below=Name"})

func ptr[T any](v T) *T { return &v }

func full() *Everything {
	return &Everything{
		Text: ptr("比<&>\n"), Own: "", Color: "red", Flag: ptr(false), Small: ptr(int32(-5)), Large: ptr(int64(math.MaxInt64)), Real: ptr(1.5),
		At: ptr(time.Date(2026, 5, 6, 7, 8, 9, 123e6, time.UTC)), Blob: []byte{0, 255}, Names: []string{"", "b"}, Reals: []float64{1, math.Inf(-1), 0.1},
		Sparse: []*string{nil, ptr("x")}, Below: &Below{Name: ptr("n"), More: &Below{Name: ptr("m")}}, Many: []Below{{Name: ptr("n")}},
		Tags: map[string]string{"b": "", "a": "1"}, Holes: map[string]*int32{"x": nil, "y": ptr(int32(1))}, Nested: map[string][]Below{"k": {}},
		Renamed: "r", RealList: [][]float32{{1}, {}},
	}
}

const fullJSON = `{"text":"比\u003c\u0026\u003e\n","own":"","color":"red","flag":false,"small":-5,"large":9223372036854775807,"real":1.5,` +
	`"at":1778051289.123,"BLOB":"AP8=","names":["","b"],"reals":[1.0,"-Infinity",0.1],"sparse":[null,"x"],"below":{"name":"n","more":{"name":"m"}},` +
	`"many":[{"name":"n"}],"tags":{"a":"1","b":""},"holes":{"x":null,"y":1},"nested":{"k":[]},"other-name":"r","realList":[[1.0],[]]}`

func TestJSON(t *testing.T) {
	if body := EncodeJSON(lower, full()); string(body) != fullJSON {
		t.Errorf("%s\n%s", body, fullJSON)
	}
	wantDecoded(t, func(in any) error { return DecodeJSON(lower, []byte(fullJSON), in) })
}

func TestCBOR(t *testing.T) {
	body := EncodeCBOR(lower, full())
	// at is tag 1 with a double, blob a byte string, large an integer of eight bytes.
	for _, part := range []string{"626174 c1fb41da7eba3647df3b", "64424c4f42 4200ff", "656c61726765 1b7fffffffffffffff"} {
		if !strings.Contains(hex.EncodeToString(body), strings.ReplaceAll(part, " ", "")) {
			t.Errorf("%s is not in %x", part, body)
		}
	}
	wantDecoded(t, func(in any) error { return DecodeCBOR(lower, body, in) })
}

func TestText(t *testing.T) {
	var in struct{ Level level }
	if err := DecodeJSON(lower, []byte(`{"level":"***"}`), &in); err != nil || in.Level != 3 {
		t.Error(in, err)
	}
	wantFault(t, "no level", DecodeJSON(lower, []byte(`{"level":"x"}`), &in), "SerializationException", "Invalid request body: invalid value of level.")
}

func wantDecoded(t *testing.T, decode func(any) error) {
	t.Helper()
	got := &Everything{}
	if err := decode(got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), got, cmpopts.IgnoreUnexported(Everything{})); diff != "" {
		t.Error(diff)
	}
}

// What is not there is left out, but lists at the top; an input may be no body at all.
func TestEmpty(t *testing.T) {
	type top struct {
		List []string
		Map  map[string]string
		In   *struct{ List []string }
	}
	if body := EncodeJSON(lower, &top{In: &struct{ List []string }{}}); string(body) != `{"list":[],"in":{}}` {
		t.Errorf("%s", body)
	}
	if body := EncodeCBOR(lower, (*top)(nil)); string(body) != "\xa0" {
		t.Errorf("%x", body)
	}
	for _, body := range []string{"", " \n", "{}", "\xa0"} {
		var in top
		decode := DecodeJSON
		if body == "\xa0" {
			decode = DecodeCBOR
		}
		if err := decode(lower, []byte(body), &in); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	if err := DecodeCBOR(lower, nil, &top{}); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	const cannot = "Invalid request body: "
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, c := range []struct{ name, body, want string }{
		{"no JSON", `{`, "unexpected EOF"},
		{"half a list", `{"names":["a"`, "unexpected EOF"},
		{"two bodies", `{}{}`, "more than one value"},
		{"rest", `{}x`, "more than one value"},
		{"a list", `[]`, "the document is not a structure"},
		{"null", `null`, "the document is not a structure"},
		{"unknown member", `{"many":[{"name":"a","Name":"b"}]}`, "unknown member many[0].Name"},
		{"another spelling", `{"Text":"a"}`, "unknown member Text"},
		{"hidden member", `{"hidden":1}`, "unknown member hidden"},
		{"twice", `{"text":"a","text":"b"}`, "duplicate name text"},
		{"null in a list", `{"names":[null]}`, "names[0] is null"},
		{"null in a map", `{"tags":{"a":null}}`, "tags.a is null"},
		{"a number as text", `{"text":1}`, "text is not a string"},
		{"text as a number", `{"small":"1"}`, "small is not an integer in range"},
		{"a fraction", `{"small":1.5}`, "small is not an integer in range"},
		{"too large", `{"small":2147483648}`, "small is not an integer in range"},
		{"a large real", `{"real":1e999}`, "real is not a number"},
		{"a boolean", `{"flag":"true"}`, "flag is not true or false"},
		{"a time as text", `{"at":"2026-05-06T07:08:09Z"}`, "at is not a time"},
		{"no time", `{"at":"NaN"}`, "at is not a time"},
		{"the year 10000", `{"at":253402300800}`, "at is not a time"},
		{"before the year 1", `{"at":-62135596801}`, "at is not a time"},
		{"no base64", `{"BLOB":"a"}`, "BLOB is not a blob"},
		{"a structure as a list", `{"below":[]}`, "below is not a structure"},
		{"a list as a map", `{"tags":[]}`, "tags is not a map"},
		{"a map as a list", `{"names":{}}`, "names is not a list"},
		{"a union", `{"unions":{"a":1}}`, "unions is not supported by this version of Kurabe"},
		{"NUL", `{"text":"\u0000"}`, "text is not a string"},
		{"NUL in a name", `{"tags":{"\u0000":"a"}}`, "invalid name in tags"},
		{"no UTF-8", "{\"text\":\"\xff\"}", "it is not UTF-8"},
		{"deep", `{"names":` + deep + `}`, "too many or too deeply nested values"},
		{"long", `{"reals":[` + strings.Repeat("1,", maxValues) + `1]}`, "too many or too deeply nested values"},
	} {
		wantFault(t, c.name, DecodeJSON(lower, []byte(c.body), &Everything{}), "SerializationException", cannot+c.want+".")
	}
	for _, c := range []struct{ name, body, want string }{
		{"no CBOR", "a1", "unexpected EOF"},
		{"two bodies", "a0a0", "cbor: 1 bytes of extraneous data starting at index 1"},
		{"a list", "80", "the document is not a structure"},
		{"unknown member", "a1617801", "unknown member x"},
		{"twice", "a26474657874616164746578746162", `cbor: found duplicate map key "text" at map element index 1`},
		{"a name that is no text", "a10102", "cbor: cannot unmarshal positive integer into Go value of type string"},
		{"a time that is no tag", "a162617400", "at is not a time"},
		{"a blob as text", "a164424c4f426161", "BLOB is not a blob"},
		{"text as a blob", "a164746578744161", "text is not a string"},
		{"a real as an integer", "a165736d616c6cfb3ff0000000000000", "small is not an integer in range"},
		{"too large", "a1656c617267651bffffffffffffffff", "large is not an integer in range"},
		{"a large number", "a1656c61726765c249010000000000000000", "large is not an integer in range"},
		{"a word for infinity", "a1647265616c68496e66696e697479", "real is not a number"},
		{"undefined in a list", "a1656e616d657381f7", "names[0] is null"},
		{"no UTF-8", "a1647465787461ff", "cbor: invalid UTF-8 string"},
		{"deep", "a1656e616d6573" + strings.Repeat("81", maxDepth) + "80", "cbor: exceeded max nested level 32"},
		{"long", "a1657265616c739a00020000" + strings.Repeat("00", 1<<17), "too many values"},
		{"many empty maps", "a1646d616e799f" + strings.Repeat("a0", maxValues) + "ff", "too many values"},
	} {
		body, err := hex.DecodeString(c.body)
		if err != nil {
			t.Fatal(c.name, err)
		}
		wantFault(t, c.name, DecodeCBOR(lower, body, &Everything{}), "SerializationException", cannot+c.want+".")
	}
}

func TestMissing(t *testing.T) {
	compatible := shape.New(shape.Text{Required: "Below=Name", Compatible: true})
	wantFault(t, "compatible", DecodeJSON(compatible, []byte(`{"Many":[{}]}`), &Everything{}), "MissingParameter", "The request must contain the parameter Many[0].Name.")
	wantFault(t, "plain", DecodeJSON(lower, []byte(`{"below":{"name":null}}`), &Everything{}), "ValidationException",
		"1 validation error detected: Value null at 'below.name' failed to satisfy constraint: Member must not be null")
}

func wantFault(t *testing.T, name string, err error, code, message string) {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) || f.Code != code || f.Status != 400 || f.Message != message {
		t.Errorf("%s: %v, want %s: %s", name, err, code, message)
	}
}

// A body within the bound of requests costs no more than some of its size.
func TestMemoryIsBounded(t *testing.T) {
	const size = 1 << 20
	for name, decode := range map[string]func() error{
		"JSON": func() error { return DecodeJSON(lower, []byte("["+strings.Repeat("{},", size/3)+"1]"), &Everything{}) },
		"CBOR": func() error {
			return DecodeCBOR(lower, []byte("\x9f"+strings.Repeat("\xa0", size)+"\xff"), &Everything{})
		},
		"CBOR, claimed": func() error { return DecodeCBOR(lower, []byte("\x9b\x00\x00\x00\xff\xff\xff\xff\xff"), &Everything{}) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if decode() == nil {
			t.Errorf("%s: accepted", name)
		}
		runtime.ReadMemStats(&after)
		if most := uint64(64 << 20); after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%s: %d bytes", name, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

// NaN has a word in JSON and a number in CBOR.
func TestNotANumber(t *testing.T) {
	for name, c := range map[string]struct {
		encode func(*shape.Model, any) []byte
		decode func(*shape.Model, []byte, any) error
	}{"JSON": {EncodeJSON, DecodeJSON}, "CBOR": {EncodeCBOR, DecodeCBOR}} {
		var got Everything
		if err := c.decode(lower, c.encode(lower, &Everything{Reals: []float64{math.NaN(), math.Inf(1)}}), &got); err != nil || !math.IsNaN(got.Reals[0]) || !math.IsInf(got.Reals[1], 1) {
			t.Errorf("%s: %v %v", name, got.Reals, err)
		}
	}
}

// fuzz holds a decoder: it refuses with a fault, or what it read is written and read again as it was.
func fuzz(t *testing.T, body []byte, decode func(*shape.Model, []byte, any) error, encode func(*shape.Model, any) []byte) {
	var in, again Everything
	if err := decode(lower, body, &in); err != nil {
		if !errors.As(err, new(*fault.Fault)) {
			t.Fatalf("not a fault: %v", err)
		}
		return
	}
	text := encode(lower, &in)
	if err := decode(lower, text, &again); err != nil {
		t.Fatalf("%q was read and written as %q: %v", body, text, err)
	}
	if second := encode(lower, &again); string(text) != string(second) {
		t.Fatalf("%q is written as %q, then %q", body, text, second)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(fullJSON))
	f.Add([]byte(`{"at":-1.5e3,"real":"NaN","reals":["Infinity",1e-400],"tags":{"":""}}`))
	f.Add([]byte(`{"text":"\ud800","BLOB":"","sparse":[null]}`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzz(t, body, DecodeJSON, EncodeJSON) })
}

func FuzzCBOR(f *testing.F) {
	f.Add(EncodeCBOR(lower, full()))
	f.Add([]byte("\xbf\x62at\xc1\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x64BLOB\x5f\x41a\xff\xff"))
	f.Add([]byte("\xa1\x64real\xf9\x7e\x00"))
	f.Fuzz(func(t *testing.T, body []byte) { fuzz(t, body, DecodeCBOR, EncodeCBOR) })
}
