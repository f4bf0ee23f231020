// @ts-check
// Sets the theme before anything is drawn. A script of its own, no module: modules run after the first frame.
(() => {
  const NAME = "mlxcel-theme";
  const THEMES = ["auto", "light", "dark"];

  function kept() {
    try {
      return localStorage.getItem(NAME) ?? "auto";
    } catch {
      return "auto";
    }
  }

  /** @param {string} theme */
  function apply(theme) {
    document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "auto";
  }

  apply(kept());
  addEventListener("storage", (event) => {
    if (event.key === NAME) apply(event.newValue ?? "auto");
  });
  addEventListener("DOMContentLoaded", () => {
    for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[name=theme]"))) {
      input.checked = input.value === document.documentElement.dataset.theme;
      input.addEventListener("change", () => {
        apply(input.value);
        try {
          localStorage.setItem(NAME, input.value);
        } catch {
          // The theme then lasts as long as the page.
        }
      });
    }
  });
})();
