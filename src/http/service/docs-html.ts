/** A document. @param links to its icon, style and script, as HTML */
export function htmlDocument(title: string, links: readonly string[], body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
${links.map((link) => `${link}\n`).join('')}</head>
<body>
${body}
</body>
</html>
`
}

/** Links to the parts of a page. They are relative, so that it also works under a path that a proxy adds. */
export function pageLinks(page: string, style: string, scripts: readonly string[]): string[] {
  return [
    `<link rel="icon" href="${page}/icon.svg">`,
    `<link rel="stylesheet" href="${page}/${style}">`,
    ...scripts.map((script) => `<script type="module" src="${page}/${script}"></script>`),
  ]
}

/** Escapes text for HTML. */
export function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

export function code(text: string): string {
  return `<code>${escape(text)}</code>`
}

/** Formats a description: text between backticks is code. */
export function prose(text: string): string {
  return escape(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map((text) => `<th scope="col">${text}</th>`).join('')
  // On a phone the rows become lists; an empty cell would leave a gap there.
  const body = rows
    .map(
      (cells) => `<tr>${cells.map((cell) => `<td${cell === '' ? ' class="empty"' : ''}>${cell}</td>`).join('')}</tr>`,
    )
    .join('\n')
  // A wide table scrolls within its own frame, which the keyboard has to reach.
  return (
    '<div class="wide" tabindex="0" role="group" ' +
    `aria-label="Table"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`
  )
}

export function block(text: string, label: string): string {
  return `<pre tabindex="0" role="group" aria-label="${escape(label)}"><code>${escape(text)}</code></pre>`
}
