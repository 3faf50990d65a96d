package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/ommer/ommer/schema"
)

// quizAnswer is the length of each answer: an uncle's JSON takes about as much.
const quizAnswer = 1450

// quiz is questions and the one right answer to each. The asker and the workers make
// the same one, and every answer is unlike all others.
type quiz struct {
	questions []schema.Question
	answers   [][]byte
}

// newQuiz makes n questions. They ask by hash, which makes the longest frames, and the
// hashes end in the question's number.
func newQuiz(n int) quiz {
	var q quiz
	for k := range n {
		number := binary.BigEndian.AppendUint32(nil, uint32(k))
		hash := sha256.Sum256(number)
		random := make([]byte, quizAnswer/2-1)
		_, _ = rand.NewChaCha8(hash).Read(random) // it never fails
		answer := make([]byte, 0, quizAnswer)
		answer = append(hex.AppendEncode(append(answer, '"'), random), '"')
		copy(hash[len(hash)-len(number):], number)
		q.questions = append(q.questions, schema.Question{Block: schema.BlockHash(hash)})
		q.answers = append(q.answers, answer)
	}
	return q
}

// answer is the right one, nil for a question that was never asked.
func (q *quiz) answer(to schema.Question) []byte {
	hash := to.Block.Hash()
	k := binary.BigEndian.Uint32(hash[len(hash)-4:])
	if uint64(k) >= uint64(len(q.questions)) || q.questions[k] != to {
		return nil
	}
	return q.answers[k]
}

// right says whether it is the answer to question k.
func (q *quiz) right(k int, answer []byte) bool { return bytes.Equal(answer, q.answers[k]) }
