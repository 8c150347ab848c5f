package mail

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
)

// Sender renders e-mails from templates and sends them.
type Sender struct {
	client *Client
	site   string // its name
	url    string // of its pages
}

var _ core.MailSender = (*Sender)(nil)

// NewSender returns a sender of a site's e-mails through a mail server. Their links begin with url.
func NewSender(client *Client, site, url string) *Sender {
	return &Sender{client: client, site: site, url: url}
}

// Send renders and delivers an e-mail.
func (s *Sender) Send(ctx context.Context, mail core.Mail) error {
	return s.client.Deliver(ctx, s.render(mail))
}

// Message is a plain-text e-mail.
type Message struct {
	// ID identifies the e-mail, and is the same at every attempt to send it.
	ID      uuid.UUID
	To      string
	Subject string
	Text    string
}

// render renders an e-mail. It contains no text by users but the address, escaped in the link, so that the
// site cannot be used to send spam.
func (s *Sender) render(mail core.Mail) Message {
	link := func(page string) string {
		return strings.TrimSuffix(s.url, "/") + page + "#token=" + mail.Token + "&email=" + url.QueryEscape(mail.To)
	}
	until := "The link works once, until " + mail.Expires.UTC().Format("2006-01-02 15:04") + " UTC."
	var subject string
	var paragraphs []string
	switch mail.Purpose {
	case core.ForVerification:
		subject = "Verify your e-mail address"
		paragraphs = []string{
			"Please verify that this e-mail address of your account at " + s.site + " is yours. To do so, open this link:",
			link("/verify"),
			until + " If you have no account there, you need do nothing.",
		}
	case core.ForAddress:
		subject = "Confirm your new e-mail address"
		paragraphs = []string{
			"Somebody, most likely you, wants this e-mail address for an account at " + s.site + " that has another one. To change it, open this link:",
			link("/verify"),
			until + " If it was not you who asked, you need do nothing.",
		}
	case core.ForReset:
		subject = "Choose a new password"
		paragraphs = []string{
			"Somebody, most likely you, has asked for a new password for your account at " + s.site + ". To choose one, open this link:",
			link("/reset"),
			until + " If it was not you who asked, you need do nothing: your password stays as it is. Do not pass the link on.",
		}
	case core.ForRegistration:
		subject = "Confirm your registration"
		paragraphs = []string{
			"Somebody, most likely you, wants an account at " + s.site + " with this e-mail address. To make it, open this link and choose a password:",
			link("/verify?registration"), // so that the page asks for a password at once
			until + " If it was not you who asked, you need do nothing, and there will be no account. Do not pass the link on.",
		}
	case core.ForOwner:
		subject = "You have an account already"
		paragraphs = []string{
			"Somebody, perhaps you, has tried to use this e-mail address for another account at " + s.site + ". There is one with it already, and nothing was changed.",
			"If it was you, sign in; if you have forgotten your password, ask for a new one there. If it was not you, you need do nothing.",
		}
	case core.ForChange:
		subject = "Your e-mail address was changed"
		paragraphs = []string{
			"An account at " + s.site + " had this e-mail address, and now has another one. From here on this address does not sign in to it.",
			"If you did not change it, somebody else did who is signed in as you, or an administrator. Please tell those who run " + s.site + " at once.",
		}
	case core.ForPassword:
		subject = "Your password was changed"
		paragraphs = []string{
			"The password of your account at " + s.site + " was changed, or reset by a link in an e-mail. If it was you, you need do nothing.",
			"If it was not you, ask for a new password at " + s.site + " now. The link to it goes to this address, and all sessions of the account end when you use it. " +
				"Then tell those who run " + s.site + ": administrators can change passwords, too.",
		}
	}
	return Message{ID: mail.ID, To: mail.To, Subject: s.site + ": " + subject, Text: strings.Join(paragraphs, "\n\n") + "\n\n" + s.site + "\n" + s.url + "\n"}
}
