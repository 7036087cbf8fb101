// The page works without this; with it files can be dropped, what is too large is said before it is sent, and
// commands are copied by a click.
"use strict";

for (const form of document.querySelectorAll("[data-drop]")) {
  const input = form.querySelector("input[type=file]"), said = form.querySelector("[data-said]");
  const send = () => {
    const size = [...input.files].reduce((sum, file) => sum + file.size, 0);
    if (size > Number(form.dataset.most)) {
      said.textContent = form.dataset.tooLarge;
      input.value = "";
    } else if (input.files.length) {
      form.classList.add("sending");
      form.submit();
    }
  };
  input.addEventListener("change", send);
  for (const name of ["dragenter", "dragover"]) form.addEventListener(name, (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
  for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    input.files = event.dataTransfer.files;
    send();
  });
}

document.documentElement.classList.add("scripted");

// What is said of a part that is replaced again and again is announced where it changes.
document.addEventListener("htmx:afterSettle", () => {
  const place = document.querySelector("[data-announce]");
  const text = [...document.querySelectorAll("[data-said]")].map((one) => one.textContent.trim()).join(" ");
  if (place && place.textContent !== text) place.textContent = text;
  showCopy();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => {
    button.textContent = button.dataset.copied;
  });
});
const showCopy = () => {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
};
showCopy();

// A server that does not answer any more is said, until it answers again.
const gone = document.createElement("p");
gone.className = "notice bad";
gone.textContent = document.body.dataset.gone;
document.addEventListener("htmx:sendError", () => document.getElementById("notices").append(gone));
document.addEventListener("htmx:beforeOnLoad", () => gone.remove());

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (button && button.dataset.confirm && !window.confirm(button.dataset.confirm)) event.preventDefault();
});

// What was unfolded stays so when a part of the page is replaced.
let unfolded = [];
document.addEventListener("htmx:beforeSwap", () => {
  unfolded = [...document.querySelectorAll("details[id][open]")].map((one) => one.id);
});
document.addEventListener("htmx:afterSettle", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
});
