// Users who are signed in in this browser are not asked to sign in: the console keeps their nickname here. The
// pages themselves are the same for all.
let nickname;
try {
  nickname = localStorage.getItem("veneer.user");
} catch {} // the site has no storage
for (const link of nickname ? document.querySelectorAll("[data-known]") : []) {
  link.textContent = link.dataset.known || nickname;
  link.dir = "auto";
  link.href = link.dataset.to;
}
