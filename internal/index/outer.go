package index

import (
	"context"

	"agentsite/internal/hub"
	"agentsite/internal/index/vector"
)

// Besides the vectors that it makes itself, an index may have those of a model outside, on a server that the operator
// chose. Each search compares the vectors of one model only: those of the model outside if the caller gives the
// query's vector of it, otherwise its own. So the caller decides when the vectors of the model are complete enough.

// Model is a model outside.
type Model struct {
	// ID distinguishes vectors of this model from those of others, also in cursors. It is not 0.
	ID uint32
	// Dims is the number of dimensions of its vectors.
	Dims int
	// Gain and Shift bring its cosines c to the scale of the index's own, as Gain*c + Shift.
	Gain, Shift float32
}

// Sought is the vector of a query's text, of length 1, from a model outside. The zero Sought is none.
type Sought struct {
	Model  uint32 // Model.ID
	Vector []float32
}

// UseModel replaces the model outside. All agents lack its vectors then, until FillModel adds them.
func (x *Index) UseModel(m Model) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.model = m
	x.outer = &senses{store: vector.NewScaled(m.Dims, m.Gain, m.Shift), woken: make(chan struct{}, 1)}
	x.outer.wanted = append(x.outer.wanted, x.words.All()...)
	x.outer.wake()
	x.state.Add(1)
}

// Missing returns the number of agents without vectors of the model outside, and a channel that gets a value when
// there are more of them. It must not be called before UseModel.
func (x *Index) Missing() (count int, woken <-chan struct{}) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.outer.wanted.Count(), x.outer.woken
}

// fillBatch is the number of agents of which FillModel encodes the texts together.
const fillBatch = 32

// FillModel adds the vectors of the model outside that are missing. encode returns the vector of each text, nil for
// a text that has none. FillModel ends when none is missing, with an error of encode, or when ctx ends. UseModel must
// not be called meanwhile.
func (x *Index) FillModel(ctx context.Context, encode func(context.Context, []string) ([][]float32, error)) error {
	x.mu.RLock()
	s := x.outer
	x.mu.RUnlock()
	for ctx.Err() == nil {
		list := x.listWanted(s, fillBatch)
		if len(list) == 0 {
			return nil
		}
		var texts []string
		for i := range list {
			texts = append(texts, TextsOf(&list[i].agent)...)
		}
		vectors, err := encode(ctx, texts)
		if err != nil {
			return err
		}
		for i := range list {
			n := senseCount(&list[i].agent)
			list[i].rows, vectors = rowsOf(vectors[:n]), vectors[n:]
		}
		x.putWanted(s, list)
	}
	return ctx.Err()
}

// TextsOf returns the texts of an agent of which each gets a vector.
func TextsOf(a *hub.Agent) []string {
	list := make([]string, senseCount(a))
	for part := range list {
		list[part] = senseText(a, part)
	}
	return list
}

// EachText calls yield with all texts that have vectors, in no order. It holds no lock meanwhile.
func (x *Index) EachText(yield func(text string)) {
	for first := 0; ; first += fillBatch {
		var list []hub.Agent
		x.mu.RLock()
		end := min(first+fillBatch, len(x.docs))
		for doc := first; doc < end; doc++ {
			if x.words.All().Has(doc) {
				list = append(list, x.agentOf(uint32(doc)))
			}
		}
		x.mu.RUnlock()
		for i := range list {
			for _, text := range TextsOf(&list[i]) {
				yield(text)
			}
		}
		if first >= end {
			return
		}
	}
}

func rowsOf(vectors [][]float32) []vector.Row {
	rows := make([]vector.Row, len(vectors))
	for i, v := range vectors {
		rows[i] = vector.NewRow(v)
	}
	return rows
}

// chooseModel returns by if its vector can be compared in this search, else the zero Sought. at is the position of
// the page, nil for the first: a further page is compared like the first. The caller must hold mu.
func (x *Index) chooseModel(by Sought, at *place) (Sought, error) {
	if by.Model != 0 && (x.outer == nil || x.senses == nil || by.Model != x.model.ID || len(by.Vector) != x.model.Dims) {
		by = Sought{}
	}
	if at == nil || at.blend == (blend{}) || at.blend.model == by.Model {
		return by, nil
	}
	if at.blend.model == 0 {
		return Sought{}, nil
	}
	return by, badField("cursor", "is of a search by a model that is not available now; start again without it")
}
