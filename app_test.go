package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestApp_CompletesValuesByConstructors refuses assignments in internal/app to fields of values of
// other packages: a value must be complete after its constructor, else the result depends on the order
// of calls. The fields of a local variable that was made by a literal, such as a configuration, may be
// assigned, because no other package has seen it yet.
func TestApp_CompletesValuesByConstructors(t *testing.T) {
	names, err := filepath.Glob("internal/app/*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files seen: the walk is broken", len(files))
	}
	for _, found := range foreignAssignments(fset, files) {
		t.Error(found)
	}
}

// TestApp_Refuses shows that the assignments marked as bad are found and no others.
func TestApp_Refuses(t *testing.T) {
	const source = `package app
import (
	"agentsite/internal/hub"
	"net/http"
)
type services struct { hub *hub.Service; cfg hub.Config }
type Portal struct { services; name string; srv *http.Server }
func (p *Portal) wire(given *hub.Service, by hub.Config) {
	p.name = "fine"
	p.hub = hub.New()
	p.hub.Told = nil           // bad
	p.cfg.URL = ""             // bad
	p.srv.Addr = ""            // fine: another module
	given.Told = nil           // bad
	by.URL = ""                // fine: a copy
	cfg := hub.Config{}
	cfg.URL = ""               // fine: built here
	made := hub.New()
	made.Told, cfg.URL = nil, "" // bad
	func() { made.Count++ }()  // bad
	svc := p.hub
	svc.Told = nil             // bad
	copied := p.cfg
	copied.URL = ""            // fine: a copy
}`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "a.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, line := range strings.Split(source, "\n") {
		if strings.Contains(line, "// bad") {
			want = append(want, fmt.Sprintf("a.go:%d:", i+1))
		}
	}
	got := foreignAssignments(fset, []*ast.File{f})
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}

// foreignAssignments returns the places where files of one package assign a field of a value of another
// package of this module, unless the value is a local variable made by a literal, or a parameter that
// is a copy. It knows types from the syntax only: those of fields and parameters from their
// declarations, those of variables from their first values.
func foreignAssignments(fset *token.FileSet, files []*ast.File) []string {
	c := &assignments{fset: fset, fields: make(map[string]map[string]ast.Expr)}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					c.addStruct(s)
				}
			}
		}
	}
	for _, f := range files {
		c.ours = make(map[string]bool)
		for _, imp := range f.Imports {
			if p, err := strconv.Unquote(imp.Path.Value); err == nil && strings.HasPrefix(p, module+"/") {
				name := p[strings.LastIndex(p, "/")+1:]
				if imp.Name != nil {
					name = imp.Name.Name
				}
				c.ours[name] = true
			}
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				c.checkFunction(d)
			}
		}
	}
	return c.found
}

// assignments finds such assignments in the files of one package.
type assignments struct {
	fset *token.FileSet
	// fields holds the types of fields by struct and name. The name of an embedded field is a space and
	// the name of its type.
	fields map[string]map[string]ast.Expr
	ours   map[string]bool     // names of this module's packages in the imports of the current file
	vars   map[string]ast.Expr // variables of the current function; nil for a value built in it
	found  []string
}

func (c *assignments) addStruct(s *ast.TypeSpec) {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	fields := make(map[string]ast.Expr)
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			fields[n.Name] = f.Type
		}
		if len(f.Names) == 0 {
			fields[" "+typeName(f.Type)] = f.Type
		}
	}
	c.fields[s.Name.Name] = fields
}

func (c *assignments) checkFunction(d *ast.FuncDecl) {
	c.vars = make(map[string]ast.Expr)
	if d.Recv != nil {
		c.addParameters(d.Recv)
	}
	c.addParameters(d.Type.Params)
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			c.addParameters(n.Type.Params)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if n.Tok != token.DEFINE {
					c.checkTarget(left)
				} else if id, ok := left.(*ast.Ident); ok {
					c.addVariable(id.Name, n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.IncDecStmt:
			c.checkTarget(n.X)
		}
		return true
	})
}

// addParameters records the types of parameters, nil for one that is a copy because it is no pointer.
func (c *assignments) addParameters(list *ast.FieldList) {
	for _, f := range list.List {
		for _, n := range f.Names {
			c.vars[n.Name] = nil
			if _, pointer := f.Type.(*ast.StarExpr); pointer || !c.isForeign(f.Type) {
				c.vars[n.Name] = f.Type
			}
		}
	}
}

// addVariable records the type of a variable, derived from its first value.
func (c *assignments) addVariable(name string, value ast.Expr) {
	switch v := value.(type) {
	case *ast.CallExpr:
		c.vars[name] = v.Fun // a constructor pkg.New counts as a type of package pkg
	case *ast.Ident, *ast.SelectorExpr:
		c.vars[name] = c.typeOf(value)
		if _, pointer := c.vars[name].(*ast.StarExpr); !pointer && c.vars[name] != nil && c.isForeign(c.vars[name]) {
			c.vars[name] = nil // a copy may be changed
		}
	default:
		c.vars[name] = nil // a literal may be changed
	}
}

// checkTarget records a problem if target is a field of a value of another package.
func (c *assignments) checkTarget(target ast.Expr) {
	s, ok := target.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if of := c.typeOf(s.X); of != nil && c.isForeign(of) {
		c.found = append(c.found, fmt.Sprintf("%s: field %s of a value of another package is assigned after its constructor",
			c.fset.Position(s.Pos()), s.Sel.Name))
	}
}

// typeOf returns the type of a variable or of a chain of fields, nil if it is unknown or the value was
// built in the current function.
func (c *assignments) typeOf(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.Ident:
		return c.vars[e.Name]
	case *ast.ParenExpr:
		return c.typeOf(e.X)
	case *ast.StarExpr:
		return c.typeOf(e.X)
	case *ast.SelectorExpr:
		of := c.typeOf(e.X)
		if of == nil || c.isForeign(of) {
			return of // a field of another package's value belongs to that package too
		}
		return c.fieldType(typeName(of), e.Sel.Name)
	}
	return nil
}

// fieldType returns the type of a field of the struct named of, or of a struct embedded in it; nil if
// there is none.
func (c *assignments) fieldType(of, name string) ast.Expr {
	fields := c.fields[of]
	if t, ok := fields[name]; ok {
		return t
	}
	if t, ok := fields[" "+name]; ok {
		return t
	}
	for _, embedded := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasPrefix(embedded, " ") {
			if t := c.fieldType(embedded[1:], name); t != nil {
				return t
			}
		}
	}
	return nil
}

// isForeign reports whether t, or the type to which it points, belongs to another package of this
// module.
func (c *assignments) isForeign(t ast.Expr) bool {
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	s, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && c.ours[pkg.Name]
}

// typeName returns the name of a type without package and pointer, "" for an unnamed type.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}
