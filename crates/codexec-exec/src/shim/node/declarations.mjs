// Makes the top-level declarations of a cell visible to all cells: each declaration becomes an
// assignment to a name outside the cell's function. `moved` of an edit is the position from which
// its line was moved.

/**
 * Adds edits and names. Returns the text that goes before everything else, because functions are
 * hoisted.
 */
export const rewrite = (body, edits, names) => {
  const cell = { edits, names, head: "" };
  for (const node of body) {
    const isExport = node.type === "ExportNamedDeclaration" || node.type === "ExportDefaultDeclaration";
    const declared = isExport ? node.declaration : node;
    if (declared === null) continue;
    switch (declared.type) {
      case "VariableDeclaration":
        assign(cell, declared);
        break;
      case "FunctionDeclaration":
        if (declared.id !== null) hoist(cell, declared);
        break;
      case "ClassDeclaration":
        if (declared.id !== null) assignClass(cell, declared);
        break;
      default:
        if (!isExport) hoistVars(cell, declared);
    }
  }
  return cell.head;
};

// `let {a} = b` becomes `void({a} = b);`. A line that starts with `void` does not continue the
// previous one, and nothing continues after `;`.
const assign = (cell, node) => {
  const { edits } = cell;
  const word = node.start + node.kind.length;
  const after = { line: node.loc.start.line, column: node.loc.start.column + node.kind.length };
  edits.push({ from: node.start, to: word, text: "void(", moved: after });
  for (const { id, init, end, loc } of node.declarations) {
    namesOf(id, cell.names);
    const isCleared = init === null && node.kind !== "var";
    if (isCleared) edits.push({ from: end, to: end, text: "=void 0", moved: loc.end });
  }
  const last = node.declarations.at(-1);
  const close = node.end === last.end ? ");" : ")";
  edits.push({ from: last.end, to: last.end, text: close, moved: last.loc.end });
};

// A function exists before the cell starts, and calls itself by the shared name, which can be
// reassigned.
const hoist = (cell, node) => {
  const { name, end, loc } = node.id;
  cell.names.push(name);
  cell.edits.push({ from: end, to: end, text: OWN, moved: loc.end });
  cell.head += `${name}=$named(${name}${OWN},"${name}");`;
};
const OWN = "$$cell";

const assignClass = (cell, node) => {
  const { name } = node.id;
  cell.names.push(name);
  cell.edits.push({ from: node.start, to: node.start, text: `${name}=`, moved: node.loc.start });
  cell.edits.push({ from: node.end, to: node.end, text: ";", moved: node.loc.end });
};

// A `var` inside a statement is a top-level declaration, too.
const hoistVars = (cell, node) => {
  if (node === null || node === undefined) return;
  switch (node.type) {
    case "VariableDeclaration":
      if (node.kind === "var") assign(cell, node);
      break;
    case "BlockStatement":
      for (const inner of node.body) hoistVars(cell, inner);
      break;
    case "IfStatement":
      hoistVars(cell, node.consequent);
      hoistVars(cell, node.alternate);
      break;
    case "ForStatement":
      uncover(cell, node.init);
      hoistVars(cell, node.body);
      break;
    case "ForInStatement":
    case "ForOfStatement":
      uncover(cell, node.left);
      hoistVars(cell, node.body);
      break;
    case "WhileStatement":
    case "DoWhileStatement":
    case "LabeledStatement":
      hoistVars(cell, node.body);
      break;
    case "TryStatement":
      hoistVars(cell, node.block);
      hoistVars(cell, node.handler?.body);
      hoistVars(cell, node.finalizer);
      break;
    case "SwitchStatement":
      for (const { consequent } of node.cases) for (const inner of consequent) hoistVars(cell, inner);
      break;
  }
};

// In the head of a loop only the keyword is removed.
const uncover = (cell, node) => {
  if (node?.type !== "VariableDeclaration" || node.kind !== "var") return;
  cell.edits.push({ from: node.start, to: node.start + 3, text: "   " });
  for (const { id } of node.declarations) namesOf(id, cell.names);
};

const namesOf = (pattern, names) => {
  switch (pattern?.type) {
    case "Identifier":
      names.push(pattern.name);
      break;
    case "ObjectPattern":
      for (const property of pattern.properties) namesOf(property.value ?? property.argument, names);
      break;
    case "ArrayPattern":
      for (const element of pattern.elements) namesOf(element, names);
      break;
    case "AssignmentPattern":
      namesOf(pattern.left, names);
      break;
    case "RestElement":
      namesOf(pattern.argument, names);
      break;
  }
};
