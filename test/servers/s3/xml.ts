type Content = string | number | boolean | Content[]

/** An element whose text is escaped and whose other content is elements. */
export function element(name: string, content: Content | XmlText): XmlText {
  return new XmlText(`<${name}>${render(content)}</${name}>`)
}

export class XmlText {
  constructor(readonly text: string) {}
}

export function elements(...parts: (XmlText | XmlText[])[]): XmlText {
  return new XmlText(
    parts
      .flat()
      .map((part) => part.text)
      .join(''),
  )
}

export function xmlDocument(root: XmlText): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root.text}`
}

/** Texts of all elements of that name, in order, at any depth. */
export function textsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text]) => unescape(text!))
}

/** Inner XML of all elements of that name, which contain no element of the same name. */
export function partsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, 'g'))].map(([, inner]) => inner!)
}

function render(content: Content | XmlText): string {
  if (content instanceof XmlText) return content.text
  if (Array.isArray(content)) return content.map(render).join('')
  return String(content).replace(/[<>&"\r]/g, (character) => `&#${character.charCodeAt(0)};`)
}

function unescape(text: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g, (whole, hex?: string, decimal?: string, name?: string) =>
    hex
      ? String.fromCodePoint(Number.parseInt(hex, 16))
      : decimal
        ? String.fromCodePoint(Number(decimal))
        : (named[name ?? ''] ?? whole),
  )
}
