package main

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"kurabe/internal/api"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/must"
	"kurabe/internal/reconcile"
)

func main() {
	if err := os.WriteFile(os.Args[1], render(ownapi.API{}.Service()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "modelgen:", err)
		os.Exit(1)
	}
}

type object map[string]any

// render writes the model of a service in awsJson 1.1.
func render(s api.Service) []byte {
	m := model{object{}, map[string]reflect.Type{}}
	var errors []object
	for _, w := range s.Errors {
		if _, known := m.shapes[w.Code]; !known {
			errors = append(errors, object{"shape": w.Code})
			m.shapes[w.Code] = object{
				"type": "structure", "members": object{"message": m.shape(reflect.TypeFor[string]())},
				"error": object{"code": w.Code, "httpStatusCode": w.Status, "senderFault": true}, "exception": true,
			}
		}
	}
	slices.SortFunc(errors, func(a, b object) int { return cmp.Compare(a["shape"].(string), b["shape"].(string)) })
	operations := object{}
	for name, op := range s.Ops {
		operations[name] = object{
			"name": name, "http": object{"method": "POST", "requestUri": "/"}, "errors": errors,
			"input": m.shape(op.In), "output": m.shape(op.Out),
		}
	}
	text, err := json.MarshalIndent(object{
		"version": "2.0",
		"metadata": object{
			"apiVersion": "2026-11-27", "endpointPrefix": s.Name, "jsonVersion": "1.1", "protocol": "json", "protocols": []string{"json"},
			"serviceFullName": "Kurabe", "serviceId": "Kurabe", "signatureVersion": "v4", "signingName": s.Name,
			"targetPrefix": ownapi.Target, "uid": s.Name + "-2026-11-27",
		},
		"operations": operations, "shapes": m.shapes,
	}, "", "  ")
	if err != nil {
		panic(err) // maps of texts always marshal
	}
	return append(text, '\n')
}

// model collects the shapes that operations refer to.
type model struct {
	shapes  object
	structs map[string]reflect.Type // of the shapes that are structures, by name
}

var (
	textType     = reflect.TypeFor[encoding.TextMarshaler]()
	timeType     = reflect.TypeFor[time.Time]()
	documentType = reflect.TypeFor[reconcile.Explanation]() // records as they are stored, which change with each version
)

// shape refers to the shape of a type, which it adds where it is new.
func (m model) shape(t reflect.Type) object {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, simple := simpleShape(t)
	switch {
	case simple != nil:
		m.shapes[name] = simple
	case t.Kind() == reflect.Slice:
		member := m.shape(t.Elem())
		name = member["shape"].(string) + "List"
		m.shapes[name] = object{"type": "list", "member": member}
	case t.Kind() == reflect.Map:
		value := m.shape(t.Elem())
		name = value["shape"].(string) + "Map"
		m.shapes[name] = object{"type": "map", "key": m.shape(reflect.TypeFor[string]()), "value": value}
	default:
		name = t.Name()
		must.True(m.structs[name] == t || m.shapes[name] == nil, "two types of a model have two names: "+name)
		if m.structs[name] == nil {
			m.structs[name] = t
			members := object{}
			m.shapes[name] = object{"type": "structure", "members": members}
			m.addMembers(members, t)
		}
	}
	return object{"shape": name}
}

func (m model) addMembers(members object, t reflect.Type) {
	for n := range t.NumField() {
		f := t.Field(n)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			m.addMembers(members, f.Type)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		members[name] = m.shape(f.Type)
	}
}

// simpleShape is the shape of a type without members, nil of any other.
func simpleShape(t reflect.Type) (string, object) {
	switch {
	case t == documentType:
		return "Document", object{"type": "structure", "members": object{}, "document": true}
	case t == timeType:
		return "Timestamp", object{"type": "timestamp", "timestampFormat": "iso8601"}
	case t.Implements(textType) || t.Kind() == reflect.String:
		return "String", object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return "Boolean", object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "Long", object{"type": "long"}
	case reflect.Float64:
		return "Float", object{"type": "double"}
	}
	return "", nil
}
