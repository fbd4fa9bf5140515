// Finds the changes to a source file that a test should notice, and writes the file with all of them behind a switch.
import { basename } from 'node:path'
import ts from 'typescript'

const { SyntaxKind: Kind } = ts

/** The replacements for each operator: a comparison has its boundary moved, and is negated. */
const operators = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '/=': ['*='],
  '|=': ['&='],
  '&=': ['|='],
  '^=': ['&='],
  '<<=': ['>>='],
  '>>=': ['<<='],
  '??=': ['='],
  '||=': ['='],
  '&&=': ['='],
}
/** Methods that return a value of their object's type: a mutant removes the call. */
const passing = new Set(
  (
    'filter sort toSorted reverse toReversed slice subarray trim toLowerCase toUpperCase flat concat replace ' +
    'replaceAll catch finally fill with'
  ).split(' '),
)
const swapped = {
  some: 'every',
  every: 'some',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  min: 'max',
  max: 'min',
  floor: 'ceil',
  ceil: 'floor',
  round: 'floor',
}

/**
 * @param {string} path shown in the mutants' names
 * @param {string} text TypeScript
 * @param {number} firstId of this file's mutants
 * @returns the mutants in the order of the text, and the file with all of them: mutant `n` runs while
 * `$mutant.is(n)` is true
 */
export function mutantsOf(path, text, firstId) {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true)
  const mutants = []
  const names = new Map()
  const original = (node) => text.slice(node.getStart(source), node.end)
  const code =
    'const $mutant = globalThis.$mutant ??= { id: Number(process.env.STEMWORK_MUTANT ?? -1), is(id) { ' +
    `return id === this.id } };\n${emit(source)}`
  return { mutants, code }

  /** The node's text, with all mutants inside it. */
  function emit(node) {
    if (isLeftAlone(node)) return original(node)
    const statement = removableStatement(node)
    const id = statement && add(node, 'removed', '')
    const all = statement
      ? []
      : alternatives(node).map(([what, replacement]) => [add(node, what, replacement), replacement])
    let out = ''
    let at = node.getStart(source)
    ts.forEachChild(node, (child) => {
      out += text.slice(at, child.getStart(source)) + emit(child)
      at = child.end
    })
    out += text.slice(at, node.end)
    if (statement) return `{if(!$mutant.is(${id})){${out}}}`
    if (all.length === 0) return out
    return `(${all.map(([number, replacement]) => `$mutant.is(${number})?(${replacement}):`).join('')}(${out}))`
  }

  function add(node, what, replacement) {
    const to = what === 'removed' ? '(removed)' : shortened(replacement)
    const name = `${path}: ${functionName(node)}${shortened(original(node))} -> ${to}`
    const count = (names.get(name) ?? 0) + 1
    names.set(name, count)
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
    const id = firstId + mutants.length
    mutants.push({ id, name: count > 1 ? `${name} (${count})` : name, line, isStatic: isStatic(node) })
    return id
  }

  function alternatives(node) {
    const found = []
    if (isCondition(node)) found.push(['negated', `!(${original(node)})`])
    if (ts.isBinaryExpression(node)) found.push(...ofBinary(node))
    else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) found.push(...ofUnary(node))
    else if (ts.isCallExpression(node)) found.push(...ofCall(node))
    else if (ts.isNumericLiteral(node)) found.push(['constant', String(Number(node.text.replaceAll('_', '')) + 1)])
    else if (node.kind === Kind.TrueKeyword) found.push(['constant', 'false'])
    else if (node.kind === Kind.FalseKeyword) found.push(['constant', 'true'])
    else if (isWord(node)) found.push(['constant', "''"])
    else if (ts.isObjectLiteralExpression(node)) found.push(...ofObject(node))
    found.push(...ofChain(node))
    if (isReturned(node)) found.push(['returned', 'undefined'])
    return found
  }

  function ofBinary({ left, operatorToken, right }) {
    const token = operatorToken.getText(source)
    if (token === '&&' || token === '||' || token === '??')
      return [
        ['operand', original(left)],
        ['operand', original(right)],
      ]
    return (operators[token] ?? []).map((other) => ['operator', `${original(left)} ${other} ${original(right)}`])
  }

  function ofUnary(node) {
    const { operand, operator } = node
    const inner = original(operand)
    if ([Kind.ExclamationToken, Kind.MinusToken, Kind.TildeToken].includes(operator)) return [['operator', inner]]
    if (ts.isForStatement(node.parent) && node.parent.incrementor === node) return []
    const other = operator === Kind.PlusPlusToken ? '--' : '++'
    return [['operator', ts.isPrefixUnaryExpression(node) ? `${other}${inner}` : `${inner}${other}`]]
  }

  function ofCall(node) {
    const { expression } = node
    if (!ts.isPropertyAccessExpression(expression)) return []
    const name = expression.name.text
    const object = original(expression.expression)
    const rest = text.slice(expression.name.end, node.end)
    if (Object.hasOwn(swapped, name) && !expression.questionDotToken)
      return [['operator', `${object}.${swapped[name]}${rest}`]]
    if (object === 'Math' && name === 'abs') return [['call', original(node.arguments[0])]]
    return passing.has(name) ? [['call', object]] : []
  }

  /** A property beside a spread overrides a property of the spread. */
  function ofObject(node) {
    if (!node.properties.some((property) => ts.isSpreadAssignment(property))) return []
    return node.properties
      .filter((property) => !ts.isSpreadAssignment(property))
      .map((property) => {
        const others = node.properties.filter((other) => other !== property)
        return ['property', `{ ${others.map(original).join(', ')} }`]
      })
  }

  /** Removes the question mark of each `?.` in a chain. */
  function ofChain(node) {
    if (!ts.isOptionalChain(node) || isInChain(node)) return []
    const found = []
    for (let link = node; link.expression && !ts.isIdentifier(link); link = link.expression) {
      const token = link.questionDotToken
      if (!token) continue
      const isName = ts.isPropertyAccessExpression(link)
      const before = text.slice(node.getStart(source), token.getStart(source))
      found.push(['chain', `${before}${isName ? '.' : ''}${text.slice(token.end, node.end)}`])
    }
    return found
  }

  /** A string that is an identifier rather than text for people. */
  function isWord(node) {
    if (!ts.isStringLiteral(node) && !ts.isNoSubstitutionTemplateLiteral(node) && !ts.isTemplateExpression(node))
      return false
    const content = original(node).slice(1, -1)
    if (content === '' || ts.isTaggedTemplateExpression(node.parent)) return false
    return !isOperandOfComparison(node)
  }

  function isLeftAlone(node) {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return true
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return true
    if (ts.isSatisfiesExpression(node) && original(node).endsWith('satisfies never')) return true
    if (ts.isPropertyName(node) && node.parent.name === node) return true
    if (ts.isCaseClause(node.parent ?? node) && node.parent.expression === node) return true
    return isTextForPeople(node) || isLogLine(node)
  }

  function isTextForPeople(node) {
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === Kind.PlusToken)
      return isTextForPeople(node.left) || isTextForPeople(node.right)
    const isText = ts.isStringLiteral(node) || ts.isTemplateExpression(node) || ts.isNoSubstitutionTemplateLiteral(node)
    return isText && /\w \w/.test(original(node).replace(/\$\{[^}]*\}/g, 'x'))
  }

  function isLogLine(node) {
    return ts.isCallExpression(node) && /(^|[.#])(logger\.\w+|warn)$/.test(node.expression.getText(source))
  }

  function removableStatement(node) {
    if (ts.isExpressionStatement(node))
      return node.expression.expression?.kind !== Kind.SuperKeyword && !isLogLine(node.expression)
    if (ts.isReturnStatement(node)) return !node.expression
    return ts.isThrowStatement(node) || ts.isBreakStatement(node) || ts.isContinueStatement(node)
  }

  /** A condition whose negation is not already covered by another mutant. */
  function isCondition(node) {
    const { parent } = node
    if (!parent) return false
    const isTested =
      ((ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent)) &&
        parent.expression === node) ||
      ((ts.isConditionalExpression(parent) || ts.isForStatement(parent)) && parent.condition === node)
    return isTested && !ts.isBinaryExpression(node) && !ts.isPrefixUnaryExpression(node)
  }

  function isReturned(node) {
    const { parent } = node
    if (!parent) return false
    const isResult =
      (ts.isReturnStatement(parent) && parent.expression === node) ||
      (ts.isArrowFunction(parent) && parent.body === node && !ts.isBlock(node))
    if (!isResult || ts.isConditionalExpression(node) || ts.isPrefixUnaryExpression(node)) return false
    return !(ts.isBinaryExpression(node) || ts.isLiteralExpression(node) || isConstant(node))
  }

  function isConstant(node) {
    return [Kind.TrueKeyword, Kind.FalseKeyword, Kind.NullKeyword].includes(node.kind) || original(node) === 'undefined'
  }

  function isOperandOfComparison({ parent }) {
    return ts.isBinaryExpression(parent) && ['===', '!=='].includes(parent.operatorToken.getText(source))
  }

  function isInChain(node) {
    let { parent } = node
    while (ts.isNonNullExpression(parent)) parent = parent.parent
    return ts.isOptionalChain(parent) && parent.expression === node
  }

  /** Whether the node runs when the module is loaded. */
  function isStatic(node) {
    for (let at = node; at.parent; at = at.parent) {
      if (ts.isFunctionLike(at.parent)) return false
      if (ts.isPropertyDeclaration(at.parent) && !ts.getCombinedModifierFlags(at.parent)) return false
    }
    return true
  }

  function functionName(node) {
    for (let at = node.parent; at; at = at.parent) {
      const named = ts.isFunctionDeclaration(at) || ts.isMethodDeclaration(at) || ts.isAccessor(at)
      if (named && at.name) return `${at.name.getText(source)}: `
      if (ts.isConstructorDeclaration(at)) return 'constructor: '
    }
    return `${basename(path, '.ts')}: `
  }
}

function shortened(code) {
  const line = code.replace(/\s+/g, ' ')
  return line.length > 100 ? `${line.slice(0, 70)} ... ${line.slice(-25)}` : line
}
