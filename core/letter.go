package core

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// Message is a plain-text e-mail. It contains no text by users, so that the site cannot be used to
// send spam.
type Message struct {
	// ID identifies the mail, and is the same at every attempt to send it.
	ID      uuid.UUID
	To      string
	Subject string
	Text    string
}

// message renders a mail. Its token, if any, works until expires.
func (c MailConfig) message(id uuid.UUID, mail PreparedMail, token string, expires time.Time) Message {
	link := func(page string) string { return strings.TrimSuffix(c.URL, "/") + page + "#token=" + token }
	until := "The link works once, until " + expires.UTC().Format("2006-01-02 15:04") + " UTC."
	var subject string
	var paragraphs []string
	switch mail.Purpose {
	case ForVerification:
		subject = "Verify your e-mail address"
		paragraphs = []string{
			"Please verify that this e-mail address of your account at " + c.Site + " is yours. To do so, open this link:",
			link("/verify"),
			until + " If you have no account there, you need do nothing.",
		}
	case ForAddress:
		subject = "Confirm your new e-mail address"
		paragraphs = []string{
			"Somebody, most likely you, wants this e-mail address for an account at " + c.Site + " that has another one. To change it, open this link:",
			link("/verify"),
			until + " If it was not you who asked, you need do nothing.",
		}
	case ForReset:
		subject = "Choose a new password"
		paragraphs = []string{
			"Somebody, most likely you, has asked for a new password for your account at " + c.Site + ". To choose one, open this link:",
			link("/reset"),
			until + " If it was not you who asked, you need do nothing: your password stays as it is. Do not pass the link on.",
		}
	case ForRegistration:
		subject = "Confirm your registration"
		paragraphs = []string{
			"Somebody, most likely you, wants an account at " + c.Site + " with this e-mail address. To make it, open this link and choose a password:",
			link("/verify"),
			until + " If it was not you who asked, you need do nothing, and there will be no account. Do not pass the link on.",
		}
	case ForOwner:
		subject = "You have an account already"
		paragraphs = []string{
			"Somebody, perhaps you, has tried to use this e-mail address for another account at " + c.Site + ". There is one with it already, and nothing was changed.",
			"If it was you, sign in; if you have forgotten your password, ask for a new one there. If it was not you, you need do nothing.",
		}
	case ForChange:
		subject = "Your e-mail address was changed"
		paragraphs = []string{
			"An account at " + c.Site + " had this e-mail address, and now has another one. From here on this address does not sign in to it.",
			"If you did not change it, somebody else did who is signed in as you, or an administrator. Please tell those who run " + c.Site + " at once.",
		}
	case ForPassword:
		subject = "Your password was changed"
		paragraphs = []string{
			"The password of your account at " + c.Site + " was changed, or reset by a link in an e-mail. If it was you, you need do nothing.",
			"If it was not you, ask for a new password at " + c.Site + " now. The link to it goes to this address, and all sessions of the account end when you use it. " +
				"Then tell those who run " + c.Site + ": administrators can change passwords, too.",
		}
	}
	return Message{ID: id, To: mail.Email, Subject: c.Site + ": " + subject, Text: strings.Join(paragraphs, "\n\n") + "\n\n" + c.Site + "\n" + c.URL + "\n"}
}
