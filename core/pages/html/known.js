// With a session in this browser, links lead to the console in place of signing in. The console keeps the
// user's nickname in the storage. The server sends the same page to all clients.
let nickname;
try {
  nickname = localStorage.getItem("veneer.user");
} catch {} // the site has no storage
for (const link of nickname ? document.querySelectorAll("[data-known]") : []) {
  link.textContent = link.dataset.known || nickname;
  link.dir = "auto";
  link.href = link.dataset.to;
}
