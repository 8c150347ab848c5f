// Package fault says what went wrong in kinds that a caller can act on: a kind
// for machines, a sentence for people, and a cause for the log.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what a caller can do about a failure. Every kind has one HTTP status
// and one code in the body of the answer; package serve holds that table.
type Kind uint8

// The kinds of fault.
const (
	Internal           Kind = iota // ours to mend; the caller learns nothing more
	Refused                        // a rule of the service says no
	Duplicate                      // it exists already
	NotFound                       // there is no such thing
	Invalid                        // the input is readable, but wrong
	Malformed                      // the body cannot be read at all
	TooLarge                       // the body is larger than allowed
	HeaderTooLarge                 // the header block is larger than allowed
	UnsupportedMedia               // the body is in no format that is read here
	PreconditionFailed             // it is not in the state that the client makes a condition
	MethodNotAllowed               // the path exists, but not for this method
	Unauthenticated                // not signed in
	Forbidden                      // signed in, but not allowed
	ScoreTooLow                    // not enough score
	TooMany                        // too many requests
	Unavailable                    // a dependency is down; try again
	Timeout                        // the request did not arrive in time
	Banned                         // the account is banned
)

var names = [...]string{
	"internal", "refused", "duplicate", "not_found", "invalid", "malformed", "too_large", "header_too_large", "unsupported_media",
	"precondition_failed", "method_not_allowed", "unauthenticated", "forbidden", "score_too_low", "too_many", "unavailable", "timeout", "banned",
}

// String returns the kind's name in metrics and logs.
func (k Kind) String() string { return names[k] }

// Error is a fault: what the caller is told, and what only the log is.
type Error struct {
	Kind    Kind
	Message string // a sentence for people

	// Fields says what is wrong with which field of the input.
	Fields map[string][]string
	// Data goes into the answer beside the message: the thing that a Duplicate
	// collides with.
	Data any
	// RetryAfter is how long to wait before trying again, if that helps.
	RetryAfter time.Duration
	// Cause is for the log and never leaves the program.
	Cause error
}

// New returns a fault of a kind with a sentence for people.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Field returns an Invalid fault about one field of the input.
func Field(name, format string, args ...any) *Error {
	sentence := fmt.Sprintf(format, args...)
	return &Error{Kind: Invalid, Message: sentence, Fields: map[string][]string{name: {sentence}}}
}

// NewUnavailable returns an Unavailable fault: the named dependency did not answer.
func NewUnavailable(dependency string, cause error) *Error {
	return &Error{
		Kind:       Unavailable,
		Message:    "The " + dependency + " cannot be reached at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      cause,
	}
}

// Error returns the sentence and, for the log, the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + " (" + e.Cause.Error() + ")"
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Of returns the fault in err's chain. An error that nobody classified is an
// Internal fault whose cause is err.
func Of(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	return &Error{Kind: Internal, Message: "Something went wrong on our side.", Cause: err}
}

// CauseOf returns the cause of the fault in err's chain, for operators, and err itself if
// there is none.
func CauseOf(err error) error {
	if f, ok := errors.AsType[*Error](err); ok && f.Cause != nil {
		return f.Cause
	}
	return err
}

// KindOf returns the kind of the fault in err's chain, Internal if there is
// none.
func KindOf(err error) Kind { return Of(err).Kind }
