package deploy

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ommer/ommer/schema"
)

// The OpenRPC document lists the errors that callers can be sent: each jsonrpc.Error
// that the source of these packages makes, and no other. Those of the bus are for
// operators who ask a worker by hand.
func TestOpenRPCListsErrors(t *testing.T) {
	var doc struct {
		Components struct {
			Errors map[string]struct {
				Code    int
				Message string
				Data    json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(schema.OpenRPC(), &doc); err != nil {
		t.Fatal(err)
	}
	braces := regexp.MustCompile(`\{\w+\}`)
	sent := errorsIn(t, "../schema", "../edge")
	for name, e := range doc.Components.Errors {
		listed := sentError{e.Code, braces.ReplaceAllString(e.Message, variable), string(e.Data)}
		at := slices.IndexFunc(sent, func(s sentError) bool {
			if s.data == variable {
				s.data = listed.data // an example of it
			}
			return s == listed
		})
		if at < 0 {
			t.Errorf("%s: no source sends %+v", name, listed)
			continue
		}
		sent = slices.Delete(sent, at, at+1)
	}
	for _, e := range sent {
		t.Errorf("components.errors of the OpenRPC document lacks %+v", e)
	}
}

// sentError is what a caller can be sent; variable stands for what differs from
// time to time.
type sentError struct {
	code          int
	message, data string
}

const variable = "{}"

// errorsIn reads the source below the folders for composite literals of
// jsonrpc.Error, the only way in which errors are made. Where a member is a parameter
// of the function around the literal, the calls of that function tell its values.
func errorsIn(t *testing.T, folders ...string) []sentError {
	t.Helper()
	var files []*ast.File
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			files = append(files, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	codes := codesIn(files)
	found := map[sentError]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			function, _ := d.(*ast.FuncDecl)
			ast.Inspect(d, func(n ast.Node) bool {
				literal, ok := n.(*ast.CompositeLit)
				if !ok || !isError(f, literal.Type) {
					return true
				}
				members := map[string]ast.Expr{}
				for _, e := range literal.Elts {
					pair := e.(*ast.KeyValueExpr)
					members[pair.Key.(*ast.Ident).Name] = pair.Value
				}
				code, ok := codes[text(members["Code"])]
				if !ok {
					t.Errorf("%s: the code of an error is %s, want one of the constants", f.Name, text(members["Code"]))
				}
				messages := []ast.Expr{members["Message"]}
				if name, ok := members["Message"].(*ast.Ident); ok {
					messages = argumentsFor(files, f.Name.Name, function, name.Name)
				}
				for _, m := range messages {
					found[sentError{code, text(m), text(members["Data"])}] = true
				}
				return true
			})
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b sentError) int {
		return cmp.Or(a.code-b.code, strings.Compare(a.message, b.message))
	})
}

// isError says whether a type is jsonrpc.Error.
func isError(f *ast.File, kind ast.Expr) bool {
	switch kind := kind.(type) {
	case *ast.Ident:
		return f.Name.Name == "jsonrpc" && kind.Name == "Error"
	case *ast.SelectorExpr:
		pkg, ok := kind.X.(*ast.Ident)
		return ok && pkg.Name == "jsonrpc" && kind.Sel.Name == "Error"
	default:
		return false
	}
}

// codesIn returns the values of the constants called Code..., which are numbers
// written out, with a sign or without.
func codesIn(files []*ast.File) map[string]int {
	codes := map[string]int{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") {
				return true
			}
			value, sign := spec.Values[0], 1
			if minus, ok := value.(*ast.UnaryExpr); ok {
				value, sign = minus.X, -1
			}
			if number, ok := value.(*ast.BasicLit); ok && (f.Name.Name == "jsonrpc" || f.Name.Name == "schema") {
				n, _ := strconv.Atoi(number.Value)
				codes[spec.Names[0].Name] = sign * n
			}
			return true
		})
	}
	return codes
}

// argumentsFor returns what the calls of a function in its package pass for one of
// its parameters.
func argumentsFor(files []*ast.File, pkg string, function *ast.FuncDecl, parameter string) []ast.Expr {
	if function == nil {
		return nil
	}
	at, position := -1, 0
	for _, field := range function.Type.Params.List {
		for _, name := range field.Names {
			if name.Name == parameter {
				at = position
			}
			position++
		}
	}
	var values []ast.Expr
	for _, f := range files {
		if f.Name.Name != pkg {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || at < 0 {
				return true
			}
			if called, ok := call.Fun.(*ast.Ident); ok && called.Name == function.Name.Name {
				values = append(values, call.Args[at])
			}
			return true
		})
	}
	return values
}

// text evaluates an expression as far as it is written out: a string, a sum of
// strings, one converted to bytes, the name of a constant. All else is variable.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case nil:
		return ""
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			return e.Value
		}
		return s
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		if strings.HasPrefix(e.Name, "Code") {
			return e.Name
		}
	case *ast.CallExpr:
		if _, ok := e.Fun.(*ast.ArrayType); ok && len(e.Args) == 1 {
			return text(e.Args[0])
		}
	}
	return variable
}
